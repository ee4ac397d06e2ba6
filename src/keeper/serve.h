#pragma once

#include "device/cuda/allocator.h"
#include "protocol/socket.h"

namespace heddle::keeper {

// Answers heddled's requests, and says between them what the GPU has left, until heddled's end of the connection is
// closed.
Status serve(protocol::Socket socket, cuda::Allocator& allocator);

}  // namespace heddle::keeper
