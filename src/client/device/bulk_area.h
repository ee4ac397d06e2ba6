#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// Who uses which part of a ring's bulk area. The client manages it alone: its records name positions.
//
// The area is cut into blocks. A large payload takes a block of its own, small ones share the current one. A block is
// free again when everybody who copies through it is done and the last record that names it is committed. The block
// that was freed last is given out first: a long copy goes round through few blocks, which stay in the cache.
namespace heddle::client {

// Not thread-safe: under its device's lock.
class BulkArea {
 public:
  explicit BulkArea(uint64_t bytes);

  // The largest payload.
  uint64_t block_bytes() const { return block_bytes_; }

  // Space for `bytes` (at most block_bytes()): a position, held until release(). nullopt: too full now.
  std::optional<uint64_t> reserve(uint64_t bytes, uint64_t committed);
  // The holder is done with the payload at `position`; record `sequence` was the last that names it.
  void release(uint64_t position, uint64_t sequence);

  // Blocks that are not free, by now.
  uint32_t blocks_in_use(uint64_t committed);

 private:
  struct Block {
    uint64_t last_sequence = 0;
    uint64_t filled = 0;
    uint32_t holders = 0;
    bool in_use = false;
  };

  void reclaim(uint64_t committed);
  bool idle(const Block& block, uint64_t committed) const {
    return block.holders == 0 && block.last_sequence <= committed;
  }
  std::optional<uint32_t> take_block(uint64_t committed);

  uint64_t block_bytes_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> free_;       // last in, first out
  std::optional<uint32_t> current_;  // the block that small payloads fill
};

}  // namespace heddle::client
