#include "daemon/swap_space.h"

#include <algorithm>
#include <utility>

namespace heddle::daemon {

bool SwapSpace::reuse(DeviceId gpu, Segment& segment) {
  auto piece = pool_.take(gpu, segment.bytes);
  if (!piece) return false;
  registry_.swap_kept = pool_.bytes();
  segment.swap.memory = std::move(piece->memory);
  segment.swap.mapped_by = gpu;
  segment.swap.mapping = piece->mapping;
  return true;
}

void SwapSpace::give(Segment& segment, MemoryAnswered made) {
  segment.swap.memory = std::move(*made.memory);
  segment.swap.mapped_by = made.request.device;
  segment.swap.mapping = made.request.mapping;
}

void SwapSpace::limit_kept() {
  give_up(pool_.shrink_to(most()));
}

void SwapSpace::release(Segment& segment) {
  Segment::Swap& swap = segment.swap;
  Fd memory = std::move(swap.memory);
  const uint64_t mapping = std::exchange(swap.mapping, 0);
  if (!memory || mapping == 0) return;
  if (swap.copy != 0) return keepers_.unmap(swap.mapped_by, mapping);
  keep({std::move(memory), segment.bytes, swap.mapped_by, mapping, clock_.now()});
}

void SwapSpace::release(MemoryAnswered made) {
  const MemoryRequest& request = made.request;
  if (!made.memory || request.mapping == 0) return;
  keep({std::move(*made.memory), request.bytes, request.device, request.mapping, clock_.now()});
}

void SwapSpace::keep(PinnedPool::Piece piece) {
  give_up(pool_.put(std::move(piece)));
  limit_kept();
  if (!unused_) give_up_unused();
}

Bytes SwapSpace::most() const {
  const Bytes limit = *config_.host, used = registry_.swapped;
  return used < limit ? std::min(*config_.pinned, limit - used) : Bytes{};
}

void SwapSpace::give_up(const PinnedPool::Pieces& pieces) {
  for (const PinnedPool::Piece& each : pieces) keepers_.unmap(each.device, each.mapping);
  registry_.swap_kept = pool_.bytes();
}

void SwapSpace::give_up_unused() {
  unused_.reset();
  give_up(pool_.give_up_unused(clock_.now() - kKeptUnused));
  if (const auto oldest = pool_.oldest()) unused_ = loop_.at(*oldest + kKeptUnused, [this] { give_up_unused(); });
}

}  // namespace heddle::daemon
