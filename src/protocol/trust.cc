#include "protocol/trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace heddle::protocol {

Status check_directory(const std::string& path, mode_t forbidden) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return fail_errno(-1, "cannot look at '%s'", path.c_str());
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorCode::kPermission, "'%s' is not a directory (a link is not followed): remove it", path.c_str());
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::kPermission,
                "'%s' belongs to user %u, not to %u: have it removed, or choose another place with HEDDLE_SOCKET",
                path.c_str(), status.st_uid, ::geteuid());
  if ((status.st_mode & forbidden) != 0)
    return fail(ErrorCode::kPermission, "'%s' has mode %o and is open to others: chmod it to %o", path.c_str(),
                status.st_mode & 0777, status.st_mode & 0777 & ~forbidden);
  return {};
}

Status prepare_directory_of(const std::string& path, bool shared) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash);
  if (directory.empty() || directory == ".") return {};
  if (::mkdir(directory.c_str(), shared ? 0755 : 0700) != 0 && errno != EEXIST)
    return fail_errno(-1, "cannot make directory '%s'", directory.c_str());
  return check_directory(directory, shared ? 0022 : 0077);
}

Result<Socket> connect_to_heddled(const std::string& path) {
  auto socket = connect_to(path);
  if (!socket) return socket;
  const auto peer = socket->peer();
  if (!peer) return tl::unexpected(peer.error());
  if (peer->uid != ::geteuid() && peer->uid != 0)
    return fail(ErrorCode::kPermission,
                "who listens at '%s' runs as user %u, and this is user %u: a program trusts its own user's heddled and "
                "root's only. Have it removed, or name another socket with HEDDLE_SOCKET",
                path.c_str(), peer->uid, ::geteuid());
  return socket;
}

}  // namespace heddle::protocol
