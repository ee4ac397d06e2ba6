#pragma once

#include <string>

#include "core/result.h"

namespace heddle::daemon {

// Where heddled listens. Clients look in the same places, in the same order.
struct Places {
  std::string control;  // clients and commands
  std::string worker;   // workers that lost heddled
  std::string history;  // what policies have learned (kept_history.h)
  bool shared = false;  // every user may connect; peer credentials decide
};

// `socket` (--socket, else HEDDLE_SOCKET) where it is not empty; else /run/heddle/control for the system's service;
// else control in the user's own runtime directory: $XDG_RUNTIME_DIR/heddle, or /tmp/heddle-<uid> where that is unset.
// The history lies beside the socket; the system's service has a directory for it, $STATE_DIRECTORY, where systemd
// starts it.
Places choose_places(const std::string& socket, bool system_service);

// Makes the directory of `places` where it is missing. One that others could write to, or that belongs to another user,
// or that is a symbolic link, is refused: whoever owns it could put his own socket there.
Status prepare_directory(const Places& places);

}  // namespace heddle::daemon
