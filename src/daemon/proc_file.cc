#include "daemon/proc_file.h"

#include <dirent.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "core/result.h"
#include "daemon/spawn.h"

namespace heddle::daemon {
namespace {

// The third word of /proc/PID/stat, behind a name in parentheses that may contain anything: 'T' where stopped, 't'
// where traced.
bool says_stopped(const std::string& line) {
  const size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") T") == 0;
}

}  // namespace

std::string read_proc_file(pid_t pid, const char* name) {
  std::string text;
  std::FILE* file = std::fopen(stringf("/proc/%d/%s", pid, name).c_str(), "re");
  if (!file) return text;
  std::array<char, 4096> piece{};
  for (size_t got; (got = std::fread(piece.data(), 1, piece.size(), file)) > 0;) text.append(piece.data(), got);
  std::fclose(file);
  return text;
}

// The process may end, and its number be another's, while it is looked at: so the pidfd is asked last.
std::optional<Duration> process_time(pid_t pid, const Fd& process) {
  clockid_t clock{};
  timespec time{};
  if (!process || ::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return {};
  if (has_ended(process)) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool is_stopped(pid_t pid) {
  return says_stopped(read_proc_file(pid, "stat"));
}

bool all_threads_stopped(pid_t pid) {
  if (!is_stopped(pid)) return false;
  DIR* threads = ::opendir(stringf("/proc/%d/task", pid).c_str());
  if (!threads) return false;
  bool all = true;
  while (const dirent* thread = all ? ::readdir(threads) : nullptr) {
    if (thread->d_name[0] != '.')
      all = says_stopped(read_proc_file(pid, stringf("task/%s/stat", thread->d_name).c_str()));
  }
  ::closedir(threads);
  return all;
}

}  // namespace heddle::daemon
