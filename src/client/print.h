#pragma once

#include <span>

#include "protocol/ring.h"

namespace heddle::client {

// Writes what kernels printed since the last call to the program's own stdout, through stdio, so that it keeps its
// place among what the program prints. One thread at a time. The worker is not trusted to keep its bounds.
void print_to_stdout(protocol::RingHeader& header, std::span<const char> area);

}  // namespace heddle::client
