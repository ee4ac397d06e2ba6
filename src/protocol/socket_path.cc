#include "protocol/socket_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace heddle::protocol {
namespace {

bool ours(const std::string& directory) {
  struct stat status;
  return ::lstat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

}  // namespace

std::string user_runtime_directory() {
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  if (directory && *directory) return std::string(directory) + "/heddle";
  return "/tmp/heddle-" + std::to_string(::getuid());
}

std::string control_socket_path() {
  const char* named = std::getenv("HEDDLE_SOCKET");
  if (named && *named) return named;
  std::string own = user_runtime_directory() + "/control";
  std::string system = std::string(kSystemRuntimeDirectory) + "/control";
  const bool has_own = ours(user_runtime_directory()) && ::access(own.c_str(), F_OK) == 0;
  if (!has_own && ::access(system.c_str(), F_OK) == 0) return system;
  return own;
}

}  // namespace heddle::protocol
