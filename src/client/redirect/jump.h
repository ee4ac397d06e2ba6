#pragma once

#include <cstdint>

#include "core/result.h"

namespace heddle::redirect {

// Bytes that a jump takes.
inline constexpr uint64_t kJumpBytes = 14;

// Overwrites the beginning of the function at `from`, which is `size` bytes long, with a jump to `to`. Functions are
// aligned to 16 bytes: a shorter one may be overwritten together with its padding, if it is padding. The pages are
// writable or executable, never both. Only while nobody runs the function.
Status write_jump(void* from, uint64_t size, const void* to);

}  // namespace heddle::redirect
