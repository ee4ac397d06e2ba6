#include "keeper/supply.h"

#include <thread>

namespace heddle::keeper {
namespace {

constexpr int kRetries = 20;
constexpr Duration kRetryAfter = std::chrono::milliseconds(5);

}  // namespace

std::vector<Result<Fd>> Supply::make(std::span<const Bytes> sizes) {
  std::vector<Result<Fd>> made;
  std::vector<size_t> cleared_now;
  int retries = kRetries;  // of all: those that are there already wait for them
  for (const Bytes size : sizes) {
    bool clearing = false;
    made.push_back(make(size, clearing, retries));
    if (made.back() && clearing) cleared_now.push_back(made.size() - 1);
  }
  const Status zero = allocator_.finish_clearing();
  for (const size_t each : cleared_now) {
    if (!zero) made[each] = tl::unexpected(zero.error());
  }
  return made;
}

Result<Fd> Supply::make(Bytes size, bool& clearing, int& retries) {
  if (auto memory = from_pool(size, clearing)) return std::move(*memory);
  clearing = true;
  auto memory = allocator_.allocate(size);
  while (!memory && memory.error().code == ErrorCode::kOutOfMemory) {
    // What was closed a moment ago is free when its last holder, another process, has closed it.
    if (pool_.release(size).value == 0) {
      if (retries-- <= 0) break;
      std::this_thread::sleep_for(kRetryAfter);
    }
    memory = allocator_.allocate(size);
  }
  return memory;
}

std::optional<Fd> Supply::from_pool(Bytes size, bool& clearing) {
  auto piece = pool_.take(size);
  if (!piece) return std::nullopt;
  clearing = !piece->cleared;
  // What cannot be cleared is the driver's again, with its descriptor.
  if (clearing && !allocator_.clear(piece->memory, size)) return std::nullopt;
  return std::move(piece->memory);
}

void Supply::clear_some() {
  std::vector<SegmentPool::Piece> pieces;
  Bytes bytes;
  while (pool_.has_uncleared() && pieces.size() < kMostAtOnce && bytes < kEnoughClearedAhead) {
    auto piece = pool_.take_uncleared();
    if (!allocator_.clear(piece->memory, piece->size)) continue;
    bytes += piece->size;
    pieces.push_back(std::move(*piece));
  }
  if (!allocator_.finish_clearing()) return;
  for (SegmentPool::Piece& piece : pieces) {
    piece.cleared = true;
    pool_.put(std::move(piece));
  }
}

void Supply::keep_at_most(Bytes most) {
  if (pool_.bytes() > most) pool_.release(pool_.bytes() - most);
}

Result<Bytes> Supply::left() {
  const auto usage = allocator_.usage();
  if (!usage) return tl::unexpected(usage.error());
  const Bytes kept = pool_.bytes();
  // What is given back is free then: half of the difference makes both equal.
  if (usage->free < kept) pool_.release(Bytes{(kept.value - usage->free.value + 1) / 2});
  return usage->free + kept;
}

}  // namespace heddle::keeper
