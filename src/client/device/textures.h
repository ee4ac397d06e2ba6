#pragma once

#include "client/device/device_task.h"
#include "client/device/handle_table.h"

// Texture and surface objects. They stand in the ring's texture table, from which every worker of the session has them;
// a record says when one came or went.
namespace heddle::client {

// A texture or surface object, as the program described it.
struct TextureState {
  cudaResourceDesc resource{};
  cudaTextureDesc sampling{};
  bool surface = false;
  uint64_t gone = 0;  // sequence of the record that took away what was in the slot before
};

// Any thread: the functions take the ring's lock.
class Textures {
 public:
  Textures(RingPort& ring, DeviceSegments& segments, DeviceTask& task)
      : ring_(ring), segments_(segments), task_(task) {}

  // Returns the handle.
  Answer<uint64_t> open(const Texture& texture, TextureState state);
  // cudaErrorInvalidValue for what is no handle of that kind.
  Done close(uint64_t handle, bool surface);
  Answer<TextureState> find(uint64_t handle, bool surface);
  Done close_all();

 private:
  // Under the lock: the slot of a live object; its end.
  Answer<uint32_t> slot_of(uint64_t handle, bool surface);
  Done take_away(uint32_t slot);

  RingPort& ring_;
  DeviceSegments& segments_;
  DeviceTask& task_;
  HandleTable<TextureState> table_{kTextureTag, protocol::kMaxTextures};
};

}  // namespace heddle::client
