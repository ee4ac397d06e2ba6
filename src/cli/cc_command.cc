// heddle cc: runs the compiler's driver, which is a program of its own (src/compiler), left out where heddle was built
// without LLVM 19.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cli/commands.h"

namespace heddle::cli {

int compile(char** arguments) {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string driver = (own.parent_path() / "heddle-cc").string();
  std::vector<char*> command{const_cast<char*>("heddle cc")};
  for (; *arguments; ++arguments) command.push_back(*arguments);
  command.push_back(nullptr);
  ::execv(driver.c_str(), command.data());
  if (errno == ENOENT) {
    std::fprintf(stderr,
                 "heddle: this heddle has no compiler (%s): it was built without LLVM 19. Install llvm-19-dev and "
                 "clang-19 and build heddle again; programs that nvcc compiled run under heddle as they are\n",
                 driver.c_str());
  } else {
    std::fprintf(stderr, "heddle: cannot run %s: %s\n", driver.c_str(), std::strerror(errno));
  }
  return kFailure;
}

}  // namespace heddle::cli
