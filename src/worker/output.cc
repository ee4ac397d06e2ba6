#include "worker/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "core/clock.h"
#include "core/log.h"
#include "core/log_descriptor.h"
#include "core/sanitizer.h"

#ifdef HEDDLE_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

namespace heddle::worker {
namespace {

// For the program to make space, while the worker waits with what it has to say.
constexpr Duration kPatience = std::chrono::milliseconds(500), kLookEvery = std::chrono::milliseconds(1);
// Text that has found no space is offered again after so long.
constexpr int kRetryMilliseconds = 20;

Result<Fd> duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail_errno(-1, "cannot duplicate descriptor %d", fd);
  return copy;
}

// What a sanitizer finds in the worker itself is the log's.
void report_to([[maybe_unused]] int fd) {
#ifdef HEDDLE_SANITIZED
  __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
#endif
}

}  // namespace

Result<std::unique_ptr<Output>> Output::capture() {
  auto output = duplicate(STDOUT_FILENO), error = duplicate(STDERR_FILENO);
  if (!output) return tl::unexpected(std::move(output).error());
  if (!error) return tl::unexpected(std::move(error).error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(-1, "cannot make a pipe for standard output and error");
  Fd read(ends[0]);
  const Fd write(ends[1]);
  ::fcntl(read.get(), F_SETFL, O_NONBLOCK);
  const auto log = move_log(*error);
  if (!log) return tl::unexpected(log.error());
  report_to(*log);
  std::fflush(stdout);
  if (::dup2(write.get(), STDOUT_FILENO) < 0 || ::dup2(write.get(), STDERR_FILENO) < 0)
    return fail_errno(-1, "cannot redirect standard output and error");
  return std::unique_ptr<Output>(new Output(std::move(read), std::move(*output), std::move(*error)));
}

Output::~Output() {
  std::fflush(stdout);
  ::dup2(output_.get(), STDOUT_FILENO);
  ::dup2(error_.get(), STDERR_FILENO);
}

OutputDrain::OutputDrain(const Fd& pipe, Printer& printer)
    : pipe_(pipe), printer_(printer), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  printer_.set_source([this] { collect(); });
  thread_ = std::thread([this] { run(); });
}

OutputDrain::~OutputDrain() {
  printer_.set_source({});
  stopping_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  thread_.join();
  collect();
}

void OutputDrain::run() {
  pollfd ready[] = {{pipe_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  while (!stopping_.load(std::memory_order_acquire)) {
    bool left;
    {
      const std::lock_guard lock(mutex_);
      read();
      left = !pass_on();
    }
    if (::poll(ready, 2, left ? kRetryMilliseconds : -1) < 0 && errno != EINTR) return;
  }
}

bool OutputDrain::read() {
  std::array<char, 4096> piece;
  bool any = false;
  for (;;) {
    const ssize_t got = ::read(pipe_.get(), piece.data(), piece.size());
    if (got <= 0) return any;
    any = true;
    waiting_.append(piece.data(), std::min(static_cast<size_t>(got), kMostWaiting - waiting_.size()));
  }
}

// Whether nothing is left.
bool OutputDrain::pass_on() {
  if (waiting_.empty()) return true;
  if (!printer_.has_program()) {
    logger("worker")->info("output: {}", waiting_);
    waiting_.clear();
    return true;
  }
  waiting_.erase(0, printer_.pass_on(waiting_));
  return waiting_.empty();
}

void OutputDrain::collect() {
  std::fflush(stdout);
  const std::lock_guard lock(mutex_);
  const MonotonicClock clock;
  for (TimePoint moved = clock.now(); clock.now() - moved < kPatience;) {
    const size_t before = waiting_.size();
    read();
    if (pass_on()) return;
    if (waiting_.size() < before) moved = clock.now();
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace heddle::worker
