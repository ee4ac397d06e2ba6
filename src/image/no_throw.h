#pragma once

#include <utility>

#include "core/result.h"

namespace heddle::image {

// Runs a function that returns a Result. What the standard library throws (allocation is all it can be here) becomes
// an error: a tenant's program may be compiled without exceptions, so none leaves this room.
template <class Function>
auto no_throw(Function&& function) noexcept -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (...) {
    // Short enough to need no allocation of its own.
    return tl::unexpected(Error{ErrorCode::kOutOfMemory, "out of memory"});
  }
}

}  // namespace heddle::image
