#include "daemon/runtime_directory.h"

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
  const char* state = system_service ? std::getenv("STATE_DIRECTORY") : nullptr;
  places.history = state && *state ? std::string(state) + "/history" : places.control + ".history";
  return places;
}

Status prepare_directory(const Places& places) {
  return protocol::prepare_directory_of(places.control, places.shared);
}

}  // namespace heddle::daemon
