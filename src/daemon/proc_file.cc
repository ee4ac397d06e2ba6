#include "daemon/proc_file.h"

#include <array>
#include <cstdio>

#include "core/result.h"

namespace heddle::daemon {

std::string read_proc_file(pid_t pid, const char* name) {
  std::string text;
  std::FILE* file = std::fopen(stringf("/proc/%d/%s", pid, name).c_str(), "re");
  if (!file) return text;
  std::array<char, 4096> piece{};
  for (size_t got; (got = std::fread(piece.data(), 1, piece.size(), file)) > 0;) text.append(piece.data(), got);
  std::fclose(file);
  return text;
}

}  // namespace heddle::daemon
