#include "daemon/vault/background.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace heddle::daemon {
namespace {

// What the log has beyond `from`, to standard error.
void show_log(const Fd& log, off_t from) {
  char text[1024];
  ssize_t count;
  while ((count = ::pread(log.get(), text, sizeof text, from)) > 0) {
    std::fwrite(text, 1, static_cast<size_t>(count), stderr);
    from += count;
  }
}

int wait_for_report(const Fd& reports, const Fd& log, off_t logged) {
  char byte;
  ssize_t count;
  do {
    count = ::read(reports.get(), &byte, sizeof byte);
  } while (count < 0 && errno == EINTR);
  if (count == 1) return 0;
  show_log(log, logged);
  return 1;
}

void leave_terminal(const Fd& log) {
  ::setsid();
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
}

}  // namespace

void Background::report() {
  [[maybe_unused]] const ssize_t written = ::write(reporting.get(), "", 1);  // a parent that is gone needs no word
  reporting.reset();
}

Result<Background> go_to_background(const std::string& log_path) {
  // Every child inherits it to write to; none may read there what others wrote.
  const Fd log(::open(log_path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return fail_errno(-1, "cannot write log '%s'", log_path.c_str());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(-1, "cannot create a pipe");
  Fd reports(ends[0]), reporting(ends[1]);
  const off_t logged = ::lseek(log.get(), 0, SEEK_END);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(-1, "cannot go to the background");
  Background background;
  if (child == 0) {
    leave_terminal(log);
    background.reporting = std::move(reporting);
  } else {
    reporting.reset();
    const Fd readable(::open(log_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    background.exit_status = wait_for_report(reports, readable, logged);
  }
  return background;
}

}  // namespace heddle::daemon
