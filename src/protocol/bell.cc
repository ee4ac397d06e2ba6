#include "protocol/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <thread>

#include "core/clock.h"

namespace heddle::protocol {
namespace {

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  // Shared futexes: the two ends are different processes.
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

// Waking a sleeper costs 5 us on bare metal, about 50 us on a virtual machine; looking for no longer than that never
// more than doubles the price of a wait (Karlin et al., Competitive randomized algorithms for nonuniform problems).
constexpr Duration kShortWatch = std::chrono::microseconds(5), kLongWatch = std::chrono::microseconds(50);
// With fewer processors, those who look take them from those who are looked for.
constexpr unsigned kProcessorsToSpare = 4;
constexpr int kLooksPerClock = 16;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// The word moves before the sleepers are counted, and a sleeper counts itself before it looks at the word: with both
// sequentially consistent, either the ringer sees the sleeper or the sleeper sees the new word.
void ring_bell(Bell& bell) {
  bell.word.fetch_add(1, std::memory_order_seq_cst);
  if (bell.sleepers.load(std::memory_order_seq_cst) != 0) futex(bell.word, FUTEX_WAKE, INT_MAX, nullptr);
}

uint32_t read_bell(const Bell& bell) {
  return bell.word.load(std::memory_order_seq_cst);
}

bool wait_bell(Bell& bell, uint32_t seen, Duration timeout) {
  timespec limit{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
  bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const long result = futex(bell.word, FUTEX_WAIT, seen, timeout.count() < 0 ? nullptr : &limit);
  const bool timed_out = result != 0 && errno == ETIMEDOUT;
  bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return !timed_out;
}

Duration spare_watch() {
  static const bool spare = std::thread::hardware_concurrency() >= kProcessorsToSpare;
  return spare ? kLongWatch : Duration::zero();
}

bool watch_bell(Bell& bell, uint32_t seen, Duration timeout) {
  const MonotonicClock clock;
  const TimePoint end = clock.now() + std::max(kShortWatch, spare_watch());
  do {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (read_bell(bell) != seen) return true;
      relax();
    }
  } while (clock.now() < end);
  return wait_bell(bell, seen, timeout);
}

}  // namespace heddle::protocol
