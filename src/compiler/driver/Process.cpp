#include "driver/Process.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::compiler {
namespace {

constexpr size_t MostKept = 256 * 1024; // bytes of what a failing compiler wrote

[[noreturn]] void become(const std::string &Program, const Arguments &Line) {
  std::vector<char *> Words{const_cast<char *>(Program.c_str())};
  for (const std::string &Argument : Line)
    Words.push_back(const_cast<char *>(Argument.c_str()));
  Words.push_back(nullptr);
  ::execvp(Program.c_str(), Words.data());
  std::fprintf(stderr, "heddle cc: cannot run %s: %s\n", Program.c_str(), std::strerror(errno));
  ::_exit(127);
}

int statusOf(pid_t Child) {
  int Status = 0;
  while (::waitpid(Child, &Status, 0) < 0)
    if (errno != EINTR)
      return 1;
  return WIFEXITED(Status) ? WEXITSTATUS(Status) : 128 + WTERMSIG(Status);
}

} // namespace

int runWatched(const std::string &Program, const Arguments &Line, std::string &Errors) {
  int Pipe[2];
  if (::pipe2(Pipe, O_CLOEXEC) != 0)
    become(Program, Line); // without advice then
  const pid_t Child = ::fork();
  if (Child == 0) {
    ::dup2(Pipe[1], STDERR_FILENO);
    become(Program, Line);
  }
  ::close(Pipe[1]);
  if (Child < 0) {
    ::close(Pipe[0]);
    return 1;
  }
  char Buffer[4096];
  for (ssize_t Read; (Read = ::read(Pipe[0], Buffer, sizeof Buffer)) != 0;) {
    if (Read < 0 && errno == EINTR)
      continue;
    if (Read < 0)
      break;
    std::fwrite(Buffer, 1, static_cast<size_t>(Read), stderr);
    Errors.append(Buffer, static_cast<size_t>(Read));
    if (Errors.size() > 2 * MostKept)
      Errors.erase(0, Errors.size() - MostKept);
  }
  ::close(Pipe[0]);
  return statusOf(Child);
}

int runQuietly(const std::string &Program, const Arguments &Line) {
  const pid_t Child = ::fork();
  if (Child == 0) {
    const int Nothing = ::open("/dev/null", O_RDWR);
    for (const int Descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::dup2(Nothing, Descriptor);
    become(Program, Line);
  }
  return Child < 0 ? 1 : statusOf(Child);
}

} // namespace heddle::compiler
