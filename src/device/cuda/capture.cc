#include "device/cuda/capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace heddle::cuda {

void PrintCapture::launched() {
  if (sink_ && in_flight_++ == 0) begin();
}

void PrintCapture::finished(uint64_t count) {
  if (!sink_ || count == 0) return;
  collect();
  in_flight_ -= std::min(count, in_flight_);
  if (in_flight_ == 0) end();
}

// Where it cannot be redirected, prints go where they went before.
void PrintCapture::begin() {
  std::fflush(stdout);
  if (!file_) file_ = Fd(::memfd_create("heddle-print", MFD_CLOEXEC));
  original_ = Fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  if (!file_ || !original_ || ::dup2(file_.get(), STDOUT_FILENO) < 0) original_.reset();
}

void PrintCapture::end() {
  if (!original_) return;
  collect();
  ::dup2(original_.get(), STDOUT_FILENO);
  original_.reset();
}

void PrintCapture::collect() {
  if (!original_) return;
  std::fflush(stdout);
  const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);  // standard output shares the offset
  std::array<char, 4096> piece;
  for (off_t at = 0; at < end;) {
    const ssize_t got = ::pread(file_.get(), piece.data(), std::min<size_t>(piece.size(), end - at), at);
    if (got <= 0) break;
    sink_({piece.data(), static_cast<size_t>(got)});
    at += got;
  }
  if (end > 0 && ::ftruncate(file_.get(), 0) == 0) ::lseek(file_.get(), 0, SEEK_SET);
}

}  // namespace heddle::cuda
