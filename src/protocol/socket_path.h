#pragma once

#include <string>

namespace heddle::protocol {

// Where a user's heddled keeps its sockets: $XDG_RUNTIME_DIR/heddle, or /tmp/heddle-<uid> where that is not set.
std::string user_runtime_directory();
// Where the system's heddled keeps them.
inline constexpr const char* kSystemRuntimeDirectory = "/run/heddle";

// The control socket that a program or command should use: $HEDDLE_SOCKET, else the user's own if it exists (in a
// directory that is the user's: others may have made one of that name), else the
// system's if that exists, else the user's own (where one would be started).
std::string control_socket_path();

}  // namespace heddle::protocol
