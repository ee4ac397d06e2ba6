#include "device/software/simt/frame_pool.h"

#include <cstring>

namespace heddle::software {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

Frame* FramePool::acquire(const CompiledFunction& function) {
  std::vector<Frame*>& unused = free_[&function];
  if (!unused.empty()) {
    Frame* frame = unused.back();
    unused.pop_back();
    return frame;
  }
  auto storage = std::make_unique<Storage>();
  storage->memory = std::make_unique<std::byte[]>(function.register_bytes + kAlignment);
  auto address = reinterpret_cast<uintptr_t>(storage->memory.get());
  storage->frame.function = &function;
  storage->frame.registers = storage->memory.get() + (kAlignment - address % kAlignment);
  if (!function.constants.empty())
    std::memcpy(storage->frame.registers + function.constants_offset, function.constants.data(),
                function.constants.size());
  all_.push_back(std::move(storage));
  return &all_.back()->frame;
}

void FramePool::release(Frame* frame) {
  free_[frame->function].push_back(frame);
}

void FramePool::release_calls() {
  free_.clear();
  for (const auto& storage : all_)
    if (storage->frame.caller) release(&storage->frame);
}

}  // namespace heddle::software
