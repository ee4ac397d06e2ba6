#pragma once

#include <algorithm>
#include <vector>

#include "core/texture.h"

namespace heddle::software {

// The texture and surface objects that kernels of a launch may name, by handle. A launch keeps the table that it was
// handed over with; a change makes a new one.
class TextureTable {
 public:
  const Texture* find(uint64_t handle) const {
    const auto at = place(handle);
    return at != entries_.end() && at->handle == handle ? &at->texture : nullptr;
  }
  // Replaces one of the same handle.
  void set(uint64_t handle, const Texture& texture) {
    const auto at = entries_.begin() + (place(handle) - entries_.begin());
    if (at != entries_.end() && at->handle == handle) {
      at->texture = texture;
    } else {
      entries_.insert(at, {handle, texture});
    }
  }
  // False where there is none.
  bool erase(uint64_t handle) {
    const auto at = place(handle);
    if (at == entries_.end() || at->handle != handle) return false;
    entries_.erase(at);
    return true;
  }

 private:
  struct Entry {
    uint64_t handle;
    Texture texture;
  };
  std::vector<Entry>::const_iterator place(uint64_t handle) const {
    return std::lower_bound(entries_.begin(), entries_.end(), handle,
                            [](const Entry& entry, uint64_t wanted) { return entry.handle < wanted; });
  }
  std::vector<Entry> entries_;  // by handle
};

}  // namespace heddle::software
