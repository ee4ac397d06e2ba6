#pragma once

#include <algorithm>
#include <vector>

#include "core/texture.h"

namespace heddle::software {

// The texture and surface objects that kernels of a launch may name, by handle. A launch keeps the table that it was
// handed over with; a change makes a new one.
//
// The lower 32 bits of a handle are the object's number, and all that a GPU looks at. The others are compared too,
// where the object has any, so that a handle whose number means another object by now is found out.
class TextureTable {
 public:
  const Texture* find(uint64_t handle) const {
    const auto at = place(handle);
    const bool named = has_number(at, handle) && (at->handle == handle || at->handle >> 32 == 0);
    return named ? &at->texture : nullptr;
  }
  // False where another object has the number.
  bool set(uint64_t handle, const Texture& texture) {
    const auto at = place(handle);
    if (has_number(at, handle)) return at->handle == handle && at->texture == texture;
    entries_.insert(at, {handle, texture});
    return true;
  }
  // False where there is none.
  bool erase(uint64_t handle) {
    const auto at = place(handle);
    if (!has_number(at, handle) || at->handle != handle) return false;
    entries_.erase(at);
    return true;
  }

 private:
  struct Entry {
    uint64_t handle;
    Texture texture;
  };
  using Place = std::vector<Entry>::const_iterator;

  static uint32_t number_of(uint64_t handle) { return static_cast<uint32_t>(handle); }
  bool has_number(Place at, uint64_t handle) const {
    return at != entries_.end() && number_of(at->handle) == number_of(handle);
  }
  Place place(uint64_t handle) const {
    return std::lower_bound(entries_.begin(), entries_.end(), number_of(handle),
                            [](const Entry& entry, uint32_t wanted) { return number_of(entry.handle) < wanted; });
  }
  std::vector<Entry> entries_;  // by number
};

}  // namespace heddle::software
