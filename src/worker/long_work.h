#pragma once

// Which records are long work, where epochs protect that alone (durability level `long`, docs/revocation.md): work of a
// kind that took `from` or longer in one of its latest runs, and of a kind that was never seen. What is short needs no
// protection: it soon ends by itself.
//
// Times are kept here and not in in_flight.h, which counts only while the device is lent. Of work that is known to be
// very short one run in ShortWork::kOneIn is looked up and timed; the others cost a look into a table.
//
// Thread safety: the issuer asks, the completions thread says what took how long.

#include <mutex>
#include <span>

#include "worker/kernel_times.h"
#include "worker/short_work.h"

namespace heddle::worker {

class LongWork {
 public:
  // 0: all work is protected, and nothing is timed.
  explicit LongWork(Duration from) : from_(from) {}
  bool chooses() const { return from_ > Duration::zero(); }

  // Issuer. For a record that needs the device; those below are of the record that was asked for last.
  bool is_long(const protocol::Record& record);
  // It is known to take so long.
  bool takes(Duration at_least) const { return known_ && *known_ >= at_least; }
  // Whether it is long enough to be protected by copies that take so long. What may be very long is.
  static constexpr int kWorth = 10;  // times as long as the copies
  bool is_worth(Duration copies) const { return !known_ || copies * kWorth <= *known_; }
  // What took() is to be told of when that record is done; what == 0: nothing.
  WorkKind timed(uint64_t sequence) const { return sequence == sequence_ ? timed_ : WorkKind{}; }

  // Whether the record is long work, or may be: the device is to time it apart from what stands beside it in its
  // stream, since a GPU shares the time between two fences out among all that is there.
  bool is_timed_apart(uint64_t sequence) const { return sequence == sequence_ && long_; }

  struct Took {
    WorkKind kind;
    Duration time;
  };
  // Completions thread.
  void took(std::span<const Took> batch);

 private:
  const Duration from_;
  ShortWork short_work_;
  uint64_t sequence_ = 0;
  WorkKind timed_;
  bool long_ = false;
  std::optional<Duration> known_;
  std::mutex mutex_;
  KernelTimes times_;
};

}  // namespace heddle::worker
