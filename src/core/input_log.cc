#include "core/input_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace heddle {

Result<std::unique_ptr<InputLogFile>> InputLogFile::open(const std::string& path, Failed failed) {
  Fd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail_errno(-1, "cannot write the input log '%s'", path.c_str());
  return std::unique_ptr<InputLogFile>(new InputLogFile(path, std::move(file), std::move(failed)));
}

void InputLogFile::write(std::string_view line) {
  if (!file_) return;
  lines_ += line;
  lines_ += '\n';
}

void InputLogFile::flush() {
  size_t written = 0;
  while (file_ && written < lines_.size()) {
    const ssize_t count = ::write(file_.get(), lines_.data() + written, lines_.size() - written);
    if (count >= 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      const auto error = fail_errno(-1, "cannot write the input log '%s', which ends here", path_.c_str());
      file_.reset();
      failed_(error.value());
    }
  }
  lines_.clear();
}

}  // namespace heddle
