#pragma once

namespace heddle::policy {

[[noreturn]] void broken_invariant(const char* what);

// Ends the process, in release too, where the books do not add up: every later promise would be wrong as well.
inline void require(bool holds, const char* what) {
  if (!holds) [[unlikely]]
    broken_invariant(what);
}

}  // namespace heddle::policy
