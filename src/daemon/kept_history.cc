#include "daemon/kept_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "policy/record/history_text.h"

namespace heddle::daemon {
namespace {

constexpr Duration kWrittenAfter = std::chrono::seconds(1);
constexpr off_t kMostOfHistory = 1 << 20;  // a thousand applications with the longest names take a quarter of it

// Nothing where there is no such file.
Result<std::string> read_kept(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return std::string();
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno(-1, "it cannot be read");
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return fail(ErrorCode::kPermission, "it is no ordinary file of user %u's", ::geteuid());
  if (status.st_size > kMostOfHistory)
    return fail(ErrorCode::kLimitExceeded, "it has %jd bytes, and no history has more than %jd",
                static_cast<intmax_t>(status.st_size), static_cast<intmax_t>(kMostOfHistory));
  std::string text(static_cast<size_t>(status.st_size), '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  if (count < 0) return fail_errno(-1, "it cannot be read");
  text.resize(static_cast<size_t>(count));
  if (text.empty()) return fail(ErrorCode::kCorrupt, "it is empty");
  return text;
}

Result<std::vector<policy::KnownApp>> known_in(const std::string& path) {
  const auto text = read_kept(path);
  if (!text) return tl::unexpected(text.error());
  if (text->empty()) return std::vector<policy::KnownApp>();
  return policy::read_history(*text);
}

// Whoever reads it finds what was there before, or all of the new text.
Status replace_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());  // of a heddled that ended while it wrote
  {
    const Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return fail_errno(-1, "cannot make '%s'", fresh.c_str());
    const ssize_t count = ::write(file.get(), text.data(), text.size());
    if (count < 0) return fail_errno(-1, "cannot write '%s'", fresh.c_str());
    if (static_cast<size_t>(count) != text.size())
      return fail(ErrorCode::kSystem, "there is no room for '%s'", fresh.c_str());
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno(-1, "cannot replace '%s'", path.c_str());
  return {};
}

}  // namespace

std::vector<policy::KnownApp> KeptHistory::open(std::string path, Ask ask) {
  path_ = std::move(path);
  ask_ = std::move(ask);
  if (path_.empty()) return {};
  auto known = known_in(path_);
  if (known) {
    written_ = known->size();
    return std::move(*known);
  }
  log_->warn("policies begin without what they have learned of applications, which '{}' should tell: {}", path_,
             known.error().text);
  return {};
}

void KeptHistory::look() {
  if (path_.empty() || due_) return;
  const policy::History* known = ask_();
  if (known && known->version() != written_) due_ = loop_.after(kWrittenAfter, [this] { save(); });
}

void KeptHistory::finish() {
  save();
  path_.clear();
}

void KeptHistory::save() {
  due_.reset();
  const policy::History* known = path_.empty() ? nullptr : ask_();
  if (!known || known->version() == written_) return;
  written_ = known->version();
  const Status written = replace_file(path_, policy::write_history(known->known()));
  if (!written && !failed_)
    log_->warn("what the policy learns of applications is lost when heddled ends: {}", written.error().text);
  failed_ = !written;
}

}  // namespace heddle::daemon
