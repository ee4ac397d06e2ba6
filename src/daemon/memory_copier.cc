#include "daemon/memory_copier.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <vector>

namespace heddle::daemon {
namespace {

constexpr size_t kPiece = 1 << 20;  // copied between looks at whether the copy is still wanted

// Where written pages begin at or behind `at`, or do not; the end where there are no more.
off_t next_written(const Fd& memory, off_t at, off_t end) {
  const off_t found = ::lseek(memory.get(), at, SEEK_DATA);
  return found < 0 ? (errno == ENXIO ? end : at) : std::min(found, end);
}
off_t next_hole(const Fd& memory, off_t at, off_t end) {
  const off_t found = ::lseek(memory.get(), at, SEEK_HOLE);
  return found < 0 ? end : std::min(found, end);
}

}  // namespace

MemoryCopier::~MemoryCopier() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    current_.reset();
    jobs_.clear();
  }
  wake_.notify_one();
  thread_.join();
}

// Signals are the loop's.
Status MemoryCopier::start() {
  if (thread_.joinable()) return {};
  bell_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell_) return fail_errno(-1, "cannot make an eventfd");
  auto watch = loop_.watch(bell_.get(), EPOLLIN, [this](uint32_t) { take_done(); });
  if (!watch) return tl::unexpected(std::move(watch).error());
  watch_ = std::move(*watch);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status started;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error& error) {
    started = fail_errno(error.code().value(), "cannot start the thread that copies memory");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void MemoryCopier::copy(uint64_t number, const Fd& to, const Fd& from, Bytes size) {
  // Descriptors of our own: whatever becomes of the segments, this memory is there until the copy is over.
  auto own_to = to.duplicate(), own_from = from.duplicate();
  Status started = start();
  if (started && !own_to) started = tl::unexpected(own_to.error());
  if (started && !own_from) started = tl::unexpected(own_from.error());
  if (!started) return events_.post(CopyAnswered{number, std::move(started)});
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({number, std::move(*own_to), std::move(*own_from), size});
  }
  wake_.notify_one();
}

void MemoryCopier::cancel(uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (current_ == number) current_.reset();
  std::erase_if(jobs_, [&](const Job& job) { return job.number == number; });
}

void MemoryCopier::take_done() {
  uint64_t rung = 0;
  (void)::read(bell_.get(), &rung, sizeof rung);
  const std::lock_guard lock(mutex_);
  for (; !done_.empty(); done_.pop_front()) events_.post(std::move(done_.front()));
}

void MemoryCopier::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    current_ = job.number;
    lock.unlock();
    Status copied = copy(job);
    lock.lock();
    current_.reset();
    done_.push_back({job.number, std::move(copied)});
    const uint64_t one = 1;
    (void)::write(bell_.get(), &one, sizeof one);
  }
}

bool MemoryCopier::is_wanted(uint64_t number) {
  const std::lock_guard lock(mutex_);
  return current_ == number;
}

Status MemoryCopier::copy(const Job& job) {
  const auto end = static_cast<off_t>(job.size.value);
  for (off_t at = 0; at < end;) {
    const off_t begin = next_written(job.from, at, end);
    at = next_hole(job.from, begin, end);
    if (begin < at) HEDDLE_TRY(copy_part(job, begin, at));
  }
  return {};
}

Status MemoryCopier::copy_part(const Job& job, off_t begin, off_t end) {
  std::vector<char> piece(kPiece);
  for (off_t at = begin; at < end;) {
    if (!is_wanted(job.number)) return fail(ErrorCode::kCancelled, "the copy was cancelled");
    const size_t wanted = std::min(kPiece, static_cast<size_t>(end - at));
    const ssize_t got = ::pread(job.from.get(), piece.data(), wanted, at);
    if (got <= 0) return fail_errno(-1, "cannot read %zu bytes at %ld", wanted, static_cast<long>(at));
    for (ssize_t written = 0; written < got;) {
      const ssize_t more =
          ::pwrite(job.to.get(), piece.data() + written, static_cast<size_t>(got - written), at + written);
      if (more <= 0)
        return fail_errno(-1, "cannot write %zd bytes at %ld", got - written, static_cast<long>(at + written));
      written += more;
    }
    at += got;
  }
  return {};
}

}  // namespace heddle::daemon
