#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace heddle::redirect {

// Where `code`, which runs at `address`, calls `target` or jumps there, directly: offsets of the four bytes that say
// how far it is, counted from behind them.
std::vector<uint64_t> find_calls(std::span<const unsigned char> code, uintptr_t address, uintptr_t target);

// For a function that has no space for a jump: points all direct calls of it, in the code of the object that holds it,
// to `to` instead, by way of a page of code near them. Returns how many there are; an error where there is none, or
// where the object in memory is not what its file says, and nothing is changed then. Whoever calls the function through
// its address is not redirected.
Result<size_t> retarget_calls(const void* function, const void* to);

}  // namespace heddle::redirect
