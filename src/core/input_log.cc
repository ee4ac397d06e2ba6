#include "core/input_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

namespace heddle {
namespace {

constexpr std::string_view kFull = "0 full ";

// Up to where the file's lines are whole: whoever wrote it may have ended in the middle of one. -1 with errno.
off_t end_of_last_line(const Fd& file, off_t size) {
  std::vector<char> piece(64 * 1024);
  while (size > 0) {
    const off_t begin = size > static_cast<off_t>(piece.size()) ? size - static_cast<off_t>(piece.size()) : 0;
    const ssize_t count = ::pread(file.get(), piece.data(), static_cast<size_t>(size - begin), begin);
    if (count < 0) return -1;
    for (ssize_t at = count; at > 0; --at) {
      if (piece[static_cast<size_t>(at) - 1] == '\n') return begin + at;
    }
    size = begin;
  }
  return 0;
}

Status check_file(const Fd& file, const std::string& path, struct stat& status) {
  if (::fstat(file.get(), &status) != 0) return fail_errno(-1, "cannot look at the input log '%s'", path.c_str());
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::kInvalidArgument, "the input log '%s' is no ordinary file", path.c_str());
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::kInvalidArgument, "the input log '%s' belongs to user %u, this is user %u", path.c_str(),
                status.st_uid, ::geteuid());
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::kInvalidArgument, "another process writes to the input log '%s'", path.c_str());
  if (::fchmod(file.get(), 0600) != 0)
    return fail_errno(-1, "cannot keep others from the input log '%s'", path.c_str());
  return {};
}

std::string full_line(Bytes most) {
  return std::string(kFull) + std::to_string(most.value) + "\n";
}

// The limit at which the log whose whole lines are `size` long ended; nullopt where it did not.
std::optional<Bytes> limit_it_ended_at(const Fd& file, off_t size) {
  char piece[64];  // more than the line that says so may have
  const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(sizeof piece));
  const ssize_t count = ::pread(file.get(), piece, static_cast<size_t>(size - begin), begin);
  if (count <= 0) return std::nullopt;
  const std::string_view end(piece, static_cast<size_t>(count) - 1);  // without the last line's own
  const size_t before = end.rfind('\n');
  const std::string line(before == std::string_view::npos ? end : end.substr(before + 1));
  if (!line.starts_with(kFull)) return std::nullopt;
  return Bytes{std::strtoull(line.c_str() + kFull.size(), nullptr, 10)};
}

}  // namespace

std::string input_log_format() {
  return stringf("0 format %u", kInputLogFormat);
}

Result<std::unique_ptr<InputLogFile>> InputLogFile::open(const std::string& path, Bytes most, Ended ended) {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd file(::open(path.c_str(), kFlags, 0600));
  if (!file) return fail_errno(-1, "cannot write the input log '%s'", path.c_str());
  struct stat status {};
  HEDDLE_TRY(check_file(file, path, status));
  const off_t end = end_of_last_line(file, status.st_size);
  if (end < 0 || (end < status.st_size && ::ftruncate(file.get(), end) != 0))
    return fail_errno(-1, "cannot take the unfinished last line out of the input log '%s'", path.c_str());
  std::unique_ptr<InputLogFile> log(new InputLogFile(path, std::move(file), end, most, std::move(ended)));
  const auto ended_at = limit_it_ended_at(log->file_, end);
  if (most.value != 0 && ended_at && ended_at->value >= most.value)
    log->end(log->full());
  else
    log->write(input_log_format());
  return log;
}

void InputLogFile::write(std::string_view line) {
  if (!file_) return;
  lines_ += line;
  lines_ += '\n';
}

void InputLogFile::flush() {
  if (!file_) return;
  if (!has_room_for(lines_.size() + full_line(most_).size())) return end_full();
  write_lines();
}

bool InputLogFile::has_room_for(size_t bytes) const {
  return most_.value == 0 || static_cast<uint64_t>(size_) + bytes <= most_.value;
}

// All of them, or none and the log ends.
void InputLogFile::write_lines() {
  size_t written = 0;
  while (file_ && written < lines_.size()) {
    const ssize_t count = ::write(file_.get(), lines_.data() + written, lines_.size() - written);
    if (count >= 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      const auto error = fail_errno(-1, "cannot write the input log '%s', which ends here", path_.c_str());
      (void)::ftruncate(file_.get(), size_);
      end(error.value());
    }
  }
  size_ += static_cast<off_t>(written);
  lines_.clear();
}

// A file that was larger than its limit when it was opened stays as it is: there is no room for the line.
void InputLogFile::end_full() {
  lines_ = (size_ == 0 ? input_log_format() + "\n" : "") + full_line(most_);
  if (has_room_for(lines_.size())) write_lines();
  if (file_) end(full());
}

Error InputLogFile::full() const {
  return {ErrorCode::kLimitExceeded,
          stringf("the input log '%s' has %s of the %s that it may, and ends here: take it away, or allow more, and "
                  "begin anew",
                  path_.c_str(), to_string(Bytes{static_cast<uint64_t>(size_)}).c_str(), to_string(most_).c_str())};
}

void InputLogFile::end(const Error& error) {
  file_.reset();
  lines_.clear();
  ended_(error);
}

}  // namespace heddle
