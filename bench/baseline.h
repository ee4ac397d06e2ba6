#pragma once

// What a round trip between two processes costs at least on this machine: one writes a word and wakes the other with a
// futex, which answers in the same way. On two cores, as a program and its worker run; on one and the same core the
// switch costs far less, and which of the two the scheduler chooses changes from run to run. Measured in the same run
// as whatever is told against it.

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace heddle::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The middle one of the samples, which may not be empty: what a few that met other work on the machine do not move.
inline double median(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// The calling thread stays on the n-th of the cores that it may use, counted round, until this goes.
class OnCore {
 public:
  explicit OnCore(int n) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    int wanted = n % CPU_COUNT(&before_), core = 0;
    for (; !CPU_ISSET(core, &before_) || wanted-- > 0; ++core) {
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  OnCore(const OnCore&) = delete;
  ~OnCore() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_;
};

// The other end is a child process; it ends with this object.
class PingPong {
 public:
  PingPong()
      : words_(static_cast<std::atomic<uint32_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    child_ = ::fork();
    if (child_ == 0) {
      const OnCore apart(1);
      for (uint32_t turn = 1;; ++turn) {
        wait_for(words_[0], turn);
        say(words_[16], turn);
      }
    }
  }
  PingPong(const PingPong&) = delete;
  ~PingPong() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::munmap(words_, 4096);
  }

  void round_trip() {
    ++turn_;
    say(words_[0], turn_);
    wait_for(words_[16], turn_);
  }
  // Mean seconds of one round trip over `count`.
  double measure(int count) {
    const OnCore here(0);
    const double begin = seconds_now();
    for (int i = 0; i < count; ++i) round_trip();
    return (seconds_now() - begin) / count;
  }

 private:
  static void say(std::atomic<uint32_t>& word, uint32_t value) {
    word.store(value);
    ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  static void wait_for(std::atomic<uint32_t>& word, uint32_t value) {
    for (uint32_t seen; (seen = word.load()) != value;)
      ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t>* words_;
  pid_t child_;
  uint32_t turn_ = 0;
};

}  // namespace heddle::bench
