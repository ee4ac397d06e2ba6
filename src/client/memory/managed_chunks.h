#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Who has what the program wrote last, for each chunk of managed memory. Plain state: nothing is copied or mapped here.
//
//              host reads            host writes           device reads         device writes
//   kNobody    kBoth                 kHost                 kDevice              kDevice
//   kDevice    kBoth, after a fetch  kHost, after a fetch  kDevice              kDevice
//   kBoth      kBoth                 kHost                 kBoth                kDevice
//   kHost      kHost                 kHost                 kBoth, after a push  kDevice, after a push
//
// The host may read what is kBoth, read and write what is kHost, and has no access to the rest. Kernels count as
// device writes: what they do is not known.
namespace heddle::client {

inline constexpr uint64_t kManagedChunkBytes = 64ull << 10;

enum class ChunkHolder : uint8_t {
  kNobody,  // nothing was written yet: zero on both sides
  kDevice,
  kBoth,
  kHost,
};
enum class ManagedAccess : uint8_t { kRead, kWrite };

// Chunks [first, first + count).
struct ChunkRange {
  size_t first = 0, count = 0;
  size_t end() const { return first + count; }
  bool operator==(const ChunkRange&) const = default;
};

// Not thread-safe.
class ManagedChunks {
 public:
  explicit ManagedChunks(size_t count) : holders_(count, ChunkHolder::kNobody), beside_device_(count) {}

  size_t size() const { return holders_.size(); }
  ChunkHolder holder(size_t chunk) const { return holders_[chunk]; }
  // Of bytes [offset, offset + bytes), bytes > 0.
  static ChunkRange covering(uint64_t offset, uint64_t bytes) {
    const size_t first = offset / kManagedChunkBytes;
    return {first, (offset + bytes - 1) / kManagedChunkBytes + 1 - first};
  }

  // Whether the host has access of that kind already.
  bool host_may(size_t chunk, ManagedAccess access) const;
  // Chunks that are not the device's alone: none, and a kernel finds nothing to do.
  size_t beside_device() const { return beside_device_; }

  // What has to be fetched before the host uses the range.
  std::vector<ChunkRange> to_fetch(ChunkRange range) const;
  // The host uses the range. Returns the runs that its access to has changed; all of it may be used so now.
  std::vector<ChunkRange> host_uses(ChunkRange range, ManagedAccess access);
  // What has to be pushed before the device uses the range.
  std::vector<ChunkRange> to_push(ChunkRange range) const;
  // The device uses the range. Returns the runs that the host had more access to before.
  std::vector<ChunkRange> device_uses(ChunkRange range, ManagedAccess access);

 private:
  void set(size_t chunk, ChunkHolder holder);
  std::vector<ChunkRange> runs_of(ChunkRange range, ChunkHolder holder) const;

  std::vector<ChunkHolder> holders_;
  size_t beside_device_;
};

}  // namespace heddle::client
