#include "client/device/bulk_area.h"

#include <algorithm>

#include "core/units.h"

namespace heddle::client {
namespace {

// Small enough that a few stay in the cores' shared cache while one side fills a block and the other empties another;
// large enough that a record and the wake-ups for each cost little beside the copy: 256 KiB ran at 0.55 of 1 MiB's
// pace.
constexpr uint64_t kBlockBytes = kMiB;
constexpr uint64_t kFewestBlocks = 8;
constexpr uint64_t kPayloadAlign = 64;

}  // namespace

BulkArea::BulkArea(uint64_t bytes)
    : block_bytes_(std::min(kBlockBytes, bytes / kFewestBlocks)), blocks_(bytes / block_bytes_) {
  for (size_t i = blocks_.size(); i-- > 0;) free_.push_back(static_cast<uint32_t>(i));
}

void BulkArea::reclaim(uint64_t committed) {
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    Block& block = blocks_[i];
    if (!block.in_use || i == current_ || !idle(block, committed)) continue;
    block = {};
    free_.push_back(i);
  }
}

std::optional<uint32_t> BulkArea::take_block(uint64_t committed) {
  reclaim(committed);
  if (free_.empty()) return std::nullopt;
  const uint32_t index = free_.back();
  free_.pop_back();
  blocks_[index].in_use = true;
  return index;
}

std::optional<uint64_t> BulkArea::reserve(uint64_t bytes, uint64_t committed) {
  const uint64_t rounded = round_up(bytes, kPayloadAlign);
  const bool small = rounded <= block_bytes_ / 4;
  if (small && current_) {
    Block& block = blocks_[*current_];
    if (idle(block, committed)) block.filled = 0;
    if (rounded > block_bytes_ - block.filled) current_.reset();
  }
  std::optional<uint32_t> index = small ? current_ : std::nullopt;
  if (!index) {
    index = take_block(committed);
    if (!index) return std::nullopt;
    if (small) current_ = index;
  }
  Block& block = blocks_[*index];
  const uint64_t position = *index * block_bytes_ + block.filled;
  block.filled += rounded;
  ++block.holders;
  return position;
}

void BulkArea::release(uint64_t position, uint64_t sequence) {
  Block& block = blocks_[position / block_bytes_];
  --block.holders;
  block.last_sequence = std::max(block.last_sequence, sequence);
}

uint32_t BulkArea::blocks_in_use(uint64_t committed) {
  reclaim(committed);
  return static_cast<uint32_t>(blocks_.size() - free_.size());
}

}  // namespace heddle::client
