#include "daemon/runtime_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "protocol/socket_path.h"

namespace heddle::daemon {
namespace {

Status check_owned(const std::string& path, bool shared) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return fail_errno(-1, "cannot look at '%s'", path.c_str());
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorCode::kPermission, "'%s' is not a directory (a link is not followed): remove it", path.c_str());
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::kPermission,
                "'%s' belongs to user %u, not to %u: remove it, or choose another with --socket", path.c_str(),
                status.st_uid, ::geteuid());
  const mode_t forbidden = shared ? 0022 : 0077;
  if ((status.st_mode & forbidden) != 0)
    return fail(ErrorCode::kPermission, "'%s' has mode %o and is open to others: chmod it to %o", path.c_str(),
                status.st_mode & 0777, shared ? 0755 : 0700);
  return {};
}

}  // namespace

Places choose_places(const std::string& socket, bool system_service) {
  Places places;
  places.shared = system_service;
  const char* environment = std::getenv("HEDDLE_SOCKET");
  if (!socket.empty()) {
    places.control = socket;
  } else if (environment && *environment) {
    places.control = environment;
  } else {
    const std::string own = system_service ? protocol::kSystemRuntimeDirectory : protocol::user_runtime_directory();
    places.control = own + "/control";
  }
  places.worker = places.control + ".worker";
  return places;
}

Status prepare_directory(const Places& places) {
  const size_t slash = places.control.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : places.control.substr(0, slash);
  if (directory.empty() || directory == ".") return {};
  if (::mkdir(directory.c_str(), places.shared ? 0755 : 0700) != 0 && errno != EEXIST)
    return fail_errno(-1, "cannot make directory '%s'", directory.c_str());
  return check_owned(directory, places.shared);
}

}  // namespace heddle::daemon
