#pragma once

// The work that was handed to the device under leases and is not done, and how much more of it there may be: so much
// that the device does not run dry, and no more, so that a lease that is withdrawn is soon back.
//
// Work behind a host call that has not returned is held: it does not run, and takes no room from what does. It has the
// same bound by stream, since all of it begins with the call's return; but a wider one where other streams' work
// follows, or the program could not go on there, which is perhaps what its call waits for.
//
// While no leases are written nothing is kept here, and the completions thread looks at one word.
//
// Thread safety: the issuer hands over and asks, the completions thread ends; the mutex orders the two. The issuer asks
// to be woken under the same lock under which it has looked, so that no end is missed; and not for each end, but once
// half of the window is free.

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <span>

#include "worker/held_streams.h"
#include "worker/kernel_times.h"

namespace heddle::worker {

class InFlight {
 public:
  // So many may always be in flight, however long they take. On one stream the next is there when one ends. Work of
  // several streams runs side by side, and comes in the order in which the program called: for each stream in the
  // latest work the next few, or a stream would wait for room behind another's queue.
  static constexpr size_t kLeast = 2, kLeastOfEach = 4;

  // While nobody waits for the device, each stream may have so many windows in flight, and more where other streams'
  // work follows: a program that fills one stream after the other has them run side by side, and who comes does not
  // wait for all that it has queued.
  static constexpr int kAlone = 50, kAhead = 500;

  // In which the issuer wants to hand more over.
  struct Room {
    uint32_t stream;
    Duration window;             // of the device's time, by the estimates; zero: without bound
    bool wanted;                 // others wait for the device
    bool held = false;           // it would stand behind a host call
    bool others_follow = false;  // behind it the ring has work of other streams
  };
  // Issuer. Whether more of that kind may be handed over. Work of a kind that was never seen fills the window. False:
  // the issuer will be woken.
  bool admits(const WorkKind& kind, const Room& room);
  // Before the device gets it; sequences rise. Returns how long work of that kind takes; none where it was never seen.
  std::optional<Duration> hand_over(uint64_t sequence, uint32_t stream, const WorkKind& kind, Duration window,
                                    std::vector<HeldBy> held = {});
  // The device has not got what was handed over last, or will not say when it is done.
  void take_back(uint64_t sequence);
  // Whether the device is to say when what it has got is done, although more may follow: after each quarter of what may
  // be in flight, so that it gets more while it is still at work. Once for each quarter.
  bool take_fence_due(Duration window, bool wanted);
  // Before the device goes on behind the host call: what it held alone runs now.
  void release(const HeldBy& returned);
  // Whether all of it is done but what is held. False: the issuer will be woken.
  bool drained();

  // Completions thread.
  bool any() const { return any_.load(std::memory_order_acquire); }
  struct Done {
    uint64_t sequence;
    Duration took;  // on the device; zero where it never ran
  };
  // Work that is not here changes nothing.
  void done(std::span<const Done> done);
  // Whether what the issuer was refused is there now.
  bool take_awaited();

 private:
  struct Work {
    uint64_t sequence;
    uint32_t stream;
    WorkKind kind;
    Duration estimate;
    std::vector<HeldBy> held;
    bool over = false;
  };

  Work* find(uint64_t sequence);
  Duration taken(const Room& room) const {
    if (room.held) return held_of_[room.stream];
    return room.wanted ? estimated_ : estimated_of_[room.stream];
  }
  static Duration limit(const Room& room) {
    if (!room.wanted) return (room.others_follow ? kAhead : kAlone) * room.window;
    return (room.held && room.others_follow ? kAlone : 1) * room.window;
  }
  // Whatever it takes.
  bool has_next(const Room& room) const { return room.held ? taken(room) == Duration::zero() : running_ < least(); }
  void count(const Work& work, int times);
  void end(Work& work);
  size_t least() const { return streams_ > 1 ? streams_ * kLeastOfEach : kLeast; }
  void count_stream(uint32_t stream);

  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::deque<Work> work_;                                       // by sequence; the first is not over
  size_t running_ = 0;                                          // of it, those that are neither over nor held
  Duration estimated_{};                                        // of these together
  std::array<Duration, protocol::kMaxStreams> estimated_of_{};  // by stream
  std::array<Duration, protocol::kMaxStreams> held_of_{};       // of those that are held
  std::array<uint32_t, 32> latest_;                             // streams of the latest work, round
  size_t handed_over_ = 0;
  size_t streams_ = 0;  // different ones among them
  // What the issuer waits for.
  std::optional<Room> awaited_room_;
  bool awaits_end_ = false;
  KernelTimes times_;
  Duration unfenced_{};  // of what was handed over since the last fence: the issuer's
};

}  // namespace heddle::worker
