#pragma once

// What a round trip between two processes costs at least on this machine: one writes a word and wakes the other with a
// futex, which answers in the same way. Measured in the same run as whatever is told against it.

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace heddle::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The other end is a child process; it ends with this object.
class PingPong {
 public:
  PingPong()
      : words_(static_cast<std::atomic<uint32_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    child_ = ::fork();
    if (child_ == 0) {
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
