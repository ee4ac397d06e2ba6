#include "worker/textures.h"

#include <algorithm>
#include <cstring>

namespace heddle::worker {
namespace {

// A copy: the client can write to the slot at any time.
Texture copy_of(const protocol::TextureSlot& slot) {
  Texture texture;
  std::memcpy(&texture, &slot.texture, sizeof texture);
  return texture;
}

}  // namespace

Checked<void> Textures::restore(uint64_t committed) {
  const uint32_t used = ring_.header().textures_used.load(std::memory_order_acquire);
  for (const auto& slot : ring_.textures().first(std::min(used, protocol::kMaxTextures))) {
    const uint64_t handle = slot.handle.load(std::memory_order_acquire);
    const uint64_t born = slot.born.load(std::memory_order_acquire);
    const uint64_t gone = slot.gone.load(std::memory_order_acquire);
    const Texture texture = copy_of(slot);
    const bool steady = slot.handle.load(std::memory_order_acquire) == handle;
    if (handle == 0 || !steady || born == 0 || born > committed || (gone != 0 && gone <= committed)) continue;
    if (auto made = set(handle, texture); !made) return made;
  }
  return {};
}

Checked<void> Textures::created(uint64_t slot) {
  if (slot >= protocol::kMaxTextures)
    return malformed("texture slot %lu of %u", static_cast<unsigned long>(slot), protocol::kMaxTextures);
  const auto& filled = ring_.textures()[slot];
  const uint64_t handle = filled.handle.load(std::memory_order_acquire);
  if (handle == 0) return malformed("texture slot %lu holds nothing", static_cast<unsigned long>(slot));
  return set(handle, copy_of(filled));
}

Checked<void> Textures::gone(uint64_t slot) {
  if (slot >= protocol::kMaxTextures)
    return malformed("texture slot %lu of %u", static_cast<unsigned long>(slot), protocol::kMaxTextures);
  // One that was never there harms nobody.
  (void)context_.remove_texture(ring_.textures()[slot].handle.load(std::memory_order_acquire));
  return {};
}

Checked<void> Textures::set(uint64_t handle, const Texture& texture) {
  const Status made = context_.set_texture(handle, texture);
  if (made) return {};
  return tl::unexpected(refusal_of("texture", made.error()));
}

}  // namespace heddle::worker
