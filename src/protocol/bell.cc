#include "protocol/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace heddle::protocol {
namespace {

long futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  // Shared futexes: the two ends are different processes.
  return ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr, 0);
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

bool watch_bell(Bell& bell, uint32_t seen, Duration timeout, WaitMode mode) {
  Looker looker(timeout.count() < 0 ? Duration::max() : timeout, mode);
  while (looker.goes_on()) {
    if (read_bell(bell) == seen) continue;
    looker.found();
    return true;
  }
  return wait_bell(bell, seen, timeout);
}

}  // namespace heddle::protocol
