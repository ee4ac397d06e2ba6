#pragma once

#include <cstddef>

namespace heddle {

// memcpy whose destination is not read again soon: where it is large, it is written around the cache. What memcpy does
// only for copies beyond the cache's size pays for the pieces of such a copy too: nothing is read in order to be
// overwritten, and what passes from core to core stays in the cache. Other threads see the bytes as after memcpy.
void stream_copy(void* to, const void* from, size_t bytes);

}  // namespace heddle
