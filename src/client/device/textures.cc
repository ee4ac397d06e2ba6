#include "client/device/textures.h"

namespace heddle::client {

using protocol::RecordType;

Answer<uint64_t> Textures::open(const Texture& texture, TextureState state) {
  const RingPort::Lock lock = ring_.lock();
  HEDDLE_ANSWER(task_.prepare(DeviceTask::Begin::kNo));
  const auto slot = table_.open(
      state, [this](uint32_t, const TextureState& before) { return before.gone <= ring_.header().committed.load(); });
  if (!slot)
    return refuse(cudaErrorMemoryAllocation,
                  stringf("all %u texture and surface objects of a device are in use", protocol::kMaxTextures));
  const uint64_t handle = table_.handle(ring_.index(), *slot);
  if (ring_.model().kind == DeviceKind::kCuda && Handle::parse(kTextureTag, handle)->number >= kEndOfTextureNumbers) {
    table_.close(*slot);
    return refuse(cudaErrorMemoryAllocation,
                  stringf("a program can make %u texture and surface objects on a GPU, and this one has: reuse them",
                          (kEndOfTextureNumbers - kFirstTextureNumber) / kTextureNumberStep));
  }
  if (const Buffer* const buffer = segments_.arena().buffer_at(texture.address)) buffer->segment->textured = true;
  auto& shared = ring_.texture_slot(*slot);
  shared.handle.store(0, std::memory_order_release);
  shared.texture = texture;
  shared.born.store(0, std::memory_order_release);
  shared.gone.store(0, std::memory_order_release);
  shared.handle.store(handle, std::memory_order_release);
  if (ring_.header().textures_used.load(std::memory_order_relaxed) <= *slot)
    ring_.header().textures_used.store(*slot + 1, std::memory_order_release);
  auto sequence = task_.append(RecordType::kTexture, *slot, 0);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  shared.born.store(*sequence, std::memory_order_release);
  return handle;
}

Answer<uint32_t> Textures::slot_of(uint64_t handle, bool surface) {
  const auto parsed = Handle::parse(kTextureTag, handle);
  const auto slot = parsed && parsed->device == ring_.index() ? table_.find(*parsed) : std::nullopt;
  if (!slot || table_.at(*slot).surface != surface) return refuse(cudaErrorInvalidValue);
  return *slot;
}

Answer<TextureState> Textures::find(uint64_t handle, bool surface) {
  const RingPort::Lock lock = ring_.lock();
  const auto slot = slot_of(handle, surface);
  if (!slot) return tl::unexpected(slot.error());
  return table_.at(*slot);
}

Done Textures::close(uint64_t handle, bool surface) {
  const RingPort::Lock lock = ring_.lock();
  HEDDLE_ANSWER(task_.prepare(DeviceTask::Begin::kNo));
  const auto slot = slot_of(handle, surface);
  if (!slot) return tl::unexpected(slot.error());
  return take_away(*slot);
}

Done Textures::take_away(uint32_t slot) {
  auto sequence = task_.append(RecordType::kTextureGone, slot, 0);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  ring_.texture_slot(slot).gone.store(*sequence, std::memory_order_release);
  table_.at(slot).gone = *sequence;
  table_.close(slot);
  return {};
}

Done Textures::close_all() {
  const RingPort::Lock lock = ring_.lock();
  for (uint32_t slot = 0; slot < table_.size(); ++slot) {
    if (table_.live(slot)) HEDDLE_ANSWER(take_away(slot));
  }
  return {};
}

}  // namespace heddle::client
