#pragma once

// Whom a program may hand its memory to: whoever listens at a socket's path, or owns its directory, need not be
// heddled.

#include <sys/types.h>

#include <string>

#include "core/result.h"
#include "protocol/socket.h"

namespace heddle::protocol {

// Whether `path` is a directory, not a link, of this process's user, without any of the mode bits `forbidden` (0077:
// nobody else's business; 0022: nobody else writes there). kPermission with what to do where it is not.
Status check_directory(const std::string& path, mode_t forbidden);

// Makes the directory of the socket at `path` where there is none, and checks it. It must belong to this process's
// user; others may enter it where it is `shared`, and write to it never. kPermission as above.
Status prepare_directory_of(const std::string& path, bool shared);

// Connects to the heddled at `path`. It must run as this process's user, or as root; kPermission for anybody else's,
// who would get the program's memory and its work.
Result<Socket> connect_to_heddled(const std::string& path);

}  // namespace heddle::protocol
