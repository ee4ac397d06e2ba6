// VirtualDevice: texture and surface objects. They stand in the ring's texture table, from which every worker of the
// session has them; a record says when one came or went.

#include "client/virtual_device.h"

namespace heddle::client {

using protocol::RecordType;

Answer<uint64_t> VirtualDevice::open_texture(const Texture& texture, TextureState state) {
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(prepare(Begin::kNo));
  const auto slot = textures.open(
      state, [this](uint32_t, const TextureState& before) { return before.gone <= ring_.header().committed.load(); });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation,
                  stringf("all %u texture and surface objects of a device are in use", protocol::kMaxTextures));
  const uint64_t handle = textures.handle(index(), *slot);
  if (model().kind == DeviceKind::kCuda && Handle::parse(kTextureTag, handle)->number >= kEndOfTextureNumbers) {
    textures.close(*slot);
    return refuse(cudaErrorMemoryAllocation,
                  stringf("a program can make %u texture and surface objects on a GPU, and this one has: reuse them",
                          (kEndOfTextureNumbers - kFirstTextureNumber) / kTextureNumberStep));
  }
  if (const Buffer* const buffer = arena_.buffer_at(texture.address)) buffer->segment->textured = true;
  auto& shared = ring_.texture_slot(*slot);
  shared.handle.store(0, std::memory_order_release);
  shared.texture = texture;
  shared.born.store(0, std::memory_order_release);
  shared.gone.store(0, std::memory_order_release);
  shared.handle.store(handle, std::memory_order_release);
  if (ring_.header().textures_used.load(std::memory_order_relaxed) <= *slot)
    ring_.header().textures_used.store(*slot + 1, std::memory_order_release);
  auto sequence = append(RecordType::kTexture, *slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  shared.born.store(*sequence, std::memory_order_release);
  return handle;
}

Answer<uint32_t> VirtualDevice::texture_slot(uint64_t handle, bool surface) {
  const auto parsed = Handle::parse(kTextureTag, handle);
  const auto slot = parsed && parsed->device == index() ? textures.find(*parsed) : std::nullopt;
  if (!slot || textures.at(*slot).surface != surface) return refuse(cudaErrorInvalidValue);
  return *slot;
}

Answer<TextureState> VirtualDevice::texture(uint64_t handle, bool surface) {
  const Lock lock = ring_.lock();
  const auto slot = texture_slot(handle, surface);
  if (!slot) return tl::unexpected(slot.error());
  return textures.at(*slot);
}

Done VirtualDevice::close_texture(uint64_t handle, bool surface) {
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(prepare(Begin::kNo));
  const auto slot = texture_slot(handle, surface);
  if (!slot) return tl::unexpected(slot.error());
  return take_away_texture(*slot);
}

Done VirtualDevice::take_away_texture(uint32_t slot) {
  auto sequence = append(RecordType::kTextureGone, slot);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  ring_.texture_slot(slot).gone.store(*sequence, std::memory_order_release);
  textures.at(slot).gone = *sequence;
  textures.close(slot);
  return {};
}

Done VirtualDevice::close_all_textures() {
  const Lock lock = ring_.lock();
  for (uint32_t slot = 0; slot < textures.size(); ++slot) {
    if (textures.live(slot)) HEDDLE_ANSWER(take_away_texture(slot));
  }
  return {};
}

}  // namespace heddle::client
