#include "daemon/runtime_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "protocol/socket_path.h"
#include "protocol/trust.h"

namespace heddle::daemon {
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
  return protocol::check_directory(directory, places.shared ? 0022 : 0077);
}

}  // namespace heddle::daemon
