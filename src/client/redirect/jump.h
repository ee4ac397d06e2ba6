#pragma once

#include <array>
#include <cstdint>

#include "core/result.h"

namespace heddle::redirect {

// Bytes that a jump takes.
inline constexpr uint64_t kJumpBytes = 14;
using Jump = std::array<unsigned char, kJumpBytes>;
Jump jump_to(const void* to);

// Overwrites the beginning of the function at `from`, which is `size` bytes long, with a jump to `to`. Functions are
// aligned to 16 bytes: a shorter one may be overwritten together with its padding, if it is padding. Only while nobody
// runs the function.
Status write_jump(void* from, uint64_t size, const void* to);

// Bytes of an empty function: a return, behind what marks where indirect calls may go. 0 where it is something else.
uint64_t empty_function_size(const void* function);

// Changes code. Through the process's memory file, which leaves the pages executable to other threads; where there is
// none, the pages are writable for a moment instead, never both.
Status write_code(void* to, const void* bytes, uint64_t count);

}  // namespace heddle::redirect
