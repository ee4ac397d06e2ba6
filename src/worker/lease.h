#pragma once

// The ring's lease, from the worker's side: whether work may be handed to the device, and when the lease goes back.
//
//   none, withdrawn --heddled lends--> held --withdrawn, its time is over, or its worker gives it up--> due
//        ^------------------------ nothing is in flight any more: returned ---------------------------/
//
// Where nobody asks for leases (protocol::Lease::State::kOpen) a look costs one load. Issuer's thread only.

#include <optional>

#include "protocol/control_page.h"

namespace heddle::worker {

class WorkerLease {
 public:
  explicit WorkerLease(protocol::ControlPage page) : page_(std::move(page)) {}

  // Whether leases count at all. Takes in what heddled has written since.
  bool exclusive() {
    if (page_.lease_word() != seen_) read();
    return lease_.state != protocol::Lease::State::kOpen;
  }
  // What follows goes by what exclusive() has found.

  // Whether more may be handed over at `now`.
  bool holds(TimePoint now);
  // Something is to be handed over at `now`: whether it may. The first under a lease may although its time is over: one
  // that is shorter than a worker takes to wake up would be lost time and again.
  bool begins(TimePoint now);
  // A burst begins that may take as long as `longest`, the longest of late: the lease is given up where it would not
  // end in time and the lease asks for that. The first burst under a lease always begins.
  void begin_burst(TimePoint now, Duration longest);
  // Held, and nothing has begun under it.
  bool fresh() const { return in_hand() && !used_; }

  // The generation that goes back as soon as nothing is in flight; none where it is held, or has gone back.
  std::optional<uint64_t> due(TimePoint now);
  // due() was said to heddled.
  void returned() { returned_ = true; }

  // Held without an end, and nobody waits for the device: there is nothing to look after.
  bool undisturbed() const { return in_hand() && !ends() && !lease_.wanted; }
  bool whole_bursts() const { return lease_.whole_bursts; }
  // Others wait for the device.
  bool wanted() const { return lease_.wanted; }
  // It was lent for a time: who has nothing more to do is lent it again, and charged for it, until he says so.
  bool ends() const { return lease_.until_ns != UINT64_MAX; }
  // How much of the device's time may be in flight; zero: without bound.
  Duration window() const { return Duration(static_cast<int64_t>(lease_.window_ns)); }
  // Until the lease ends by itself; none where it does not, or has ended.
  std::optional<Duration> remaining(TimePoint now) const;

 private:
  void read();
  bool over(TimePoint now) const;
  bool in_hand() const { return lease_.state == protocol::Lease::State::kHeld && !given_up_ && !returned_; }

  protocol::ControlPage page_;
  uint64_t seen_ = protocol::Lease{}.word();
  protocol::Lease lease_;
  bool given_up_ = false, used_ = false, returned_ = true;  // of this generation
};

}  // namespace heddle::worker
