#pragma once

// Addresses of the lanes of a memory instruction: formed, checked, resolved to host addresses. Every access is checked
// for bounds and alignment before any of it happens; one that fails faults the block. The checks look at the lowest and
// the highest address of the warp first, and lane by lane only where that does not settle it.

#include "device/software/simt/access_fault.h"
#include "device/software/simt/lanes/lanes.h"
#include "device/software/simt/lanes/space.h"

namespace heddle::software::HEDDLE_LANES {

// Where the lanes of a warp access memory. Inactive lanes have the address of the first active one, so that loads need
// not look at the mask.
struct Access {
  enum class Shape { kScattered, kUniform, kRow };  // kRow: all lanes run, each behind the one before
  Shape shape = Shape::kScattered;
  alignas(64) u64 host[kLanes];
};

// Spans of global memory up to this are looked up granule by granule, beyond it lane by lane.
inline constexpr u64 kMaxSpan = 64 * MemoryMap::kGranule;

// The address of each lane within its space, as the instruction forms it. Shared, local and parameter addresses are 32
// bits wide and wrap there.
template <At kSpace>
[[gnu::always_inline]] inline void form_addresses(const Warp& warp, const Op& op, u64* address) {
  u64 offset = static_cast<u64>(op.imm);
  if (op.flags & kFrameRelative) {
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = warp.frame->local_base + offset;
  } else if (op.flags & kAddress64) {
    const u64* base = lanes_of<u64>(warp, op.a);
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + offset;
  } else {
    const u32* base = lanes_of<u32>(warp, op.a);
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + offset;
  }
  if constexpr (kSpace != At::kGlobal && kSpace != At::kGeneric)
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = static_cast<u32>(address[lane]);
  if (warp.active == kAllLanes) return;
  u64 first = address[__builtin_ctz(warp.active)];
  u32 active = warp.active;
  for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = active >> lane & 1 ? address[lane] : first;
}

// Whether [address, address + bytes) lies below `limit`.
[[gnu::always_inline]] inline bool below(u64 address, u64 bytes, u64 limit) {
  return address < limit && bytes <= limit - address;
}

[[gnu::always_inline]] inline u64 local_base(const Warp& warp, u32 lane) {
  return reinterpret_cast<u64>(warp.local) + u64{lane} * warp.block->local_stride;
}

// What reads find beside a buffer's memory (MemoryMap::is_beside).
alignas(64) inline constexpr u8 kNothing[64] = {};

// The host address of one lane's access, 0 if it may not be touched. Parameters can only be read.
template <At kSpace>
[[gnu::always_inline]] inline u64 resolve(const Warp& warp, u32 lane, u64 address, u64 bytes, bool write) {
  const BlockState& block = *warp.block;
  if constexpr (kSpace == At::kGlobal) {
    if (block.memory->contains(address, bytes)) return address;
    return !write && block.memory->is_beside(address, bytes) ? reinterpret_cast<u64>(kNothing) : 0;
  } else if constexpr (kSpace == At::kShared) {
    return below(address, bytes, block.shared_bytes) ? reinterpret_cast<u64>(block.shared) + address : 0;
  } else if constexpr (kSpace == At::kLocal) {
    return below(address, bytes, block.local_bytes) ? local_base(warp, lane) + address : 0;
  } else if constexpr (kSpace == At::kParameter) {
    bool inside = !write && below(address, bytes, block.kernel->parameter_bytes);
    return inside ? reinterpret_cast<u64>(block.parameters) + address : 0;
  } else {
    if (address < kSharedWindow) return resolve<At::kGlobal>(warp, lane, address, bytes, write);
    if (address < kLocalWindow) return resolve<At::kShared>(warp, lane, address - kSharedWindow, bytes, write);
    if (address < kParameterWindow) return resolve<At::kLocal>(warp, lane, address - kLocalWindow, bytes, write);
    if (address >= kFunctionWindow) return 0;
    return resolve<At::kParameter>(warp, lane, address - kParameterWindow, bytes, write);
  }
}

// Resolves all lanes at once, if the lowest and the highest address say that all is well.
template <At kSpace>
[[gnu::always_inline]] inline bool resolve_all(const Warp& warp, u64 lowest, u64 highest, u64 bytes, bool write,
                                               u64* address) {
  const BlockState& block = *warp.block;
  if constexpr (kSpace == At::kGlobal) {
    return highest - lowest <= kMaxSpan && block.memory->contains(lowest, highest - lowest + bytes);
  } else if constexpr (kSpace == At::kShared) {
    if (!below(highest, bytes, block.shared_bytes)) return false;
    u64 base = reinterpret_cast<u64>(block.shared);
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] += base;
    return true;
  } else if constexpr (kSpace == At::kLocal) {
    if (!below(highest, bytes, block.local_bytes)) return false;
    u64 base = reinterpret_cast<u64>(warp.local), stride = block.local_stride;
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] += base + lane * stride;
    return true;
  } else if constexpr (kSpace == At::kParameter) {
    if (write || !below(highest, bytes, block.kernel->parameter_bytes)) return false;
    u64 base = reinterpret_cast<u64>(block.parameters);
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] += base;
    return true;
  } else {
    if (highest < kSharedWindow) return resolve_all<At::kGlobal>(warp, lowest, highest, bytes, write, address);
    if (lowest < kSharedWindow || highest >= kLocalWindow) return false;
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] -= kSharedWindow;
    if (resolve_all<At::kShared>(warp, lowest - kSharedWindow, highest - kSharedWindow, bytes, write, address))
      return true;
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] += kSharedWindow;
    return false;
  }
}

// Lane by lane; faults the block at the first lane whose access is not allowed.
template <At kSpace>
[[gnu::noinline]] bool resolve_each(Warp& warp, const Op& op, u64 bytes, bool write, u64* address) {
  for (u32 lane = 0; lane < kLanes; ++lane) {
    if (!(warp.active >> lane & 1)) continue;
    u64 host = resolve<kSpace>(warp, lane, address[lane], bytes, write);
    if (host == 0 || (address[lane] & (bytes - 1))) {
      raise_access_fault(warp, op, lane, address[lane], bytes, write, host != 0);
      return false;
    }
    address[lane] = host;
  }
  u64 first = address[__builtin_ctz(warp.active)];
  for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = warp.active >> lane & 1 ? address[lane] : first;
  return true;
}

// How many 32-byte sectors the lanes touch. Neighbouring lanes that touch the same one count once; lanes farther apart
// that meet in a sector count twice. Accesses are aligned, so that those of up to 32 bytes lie in one sector.
[[gnu::always_inline]] inline u64 sectors(const u64* address, u32 active) {
  u64 changes = 0;
  if (active == kAllLanes) {
    for (u32 lane = 1; lane < kLanes; ++lane) changes += address[lane] / 32 != address[lane - 1] / 32;
    return changes + 1;
  }
  u64 previous = ~u64{0};
  for (; active; active &= active - 1) {
    u64 sector = address[__builtin_ctz(active)] / 32;
    changes += sector != previous;
    previous = sector;
  }
  return changes;
}

// Forms, checks and resolves the addresses of all lanes. False: the block has faulted. `bytes` is a power of two, of
// all elements of a lane together, at most 64.
template <At kSpace>
[[gnu::noinline]] bool locate(Warp& warp, const Op& op, u64 bytes, bool write, Access& access) {
  constexpr bool kCounts = kSpace == At::kGlobal || kSpace == At::kGeneric;
  u64* address = access.host;
  form_addresses<kSpace>(warp, op, address);
  u64 lowest = address[0], highest = address[0], low_bits = 0, strayed = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) {
    lowest = address[lane] < lowest ? address[lane] : lowest;
    highest = address[lane] > highest ? address[lane] : highest;
    low_bits |= address[lane];
    strayed |= address[lane] ^ (address[0] + lane * bytes);
  }
  if (op.flags & kPolling) ++warp.polls;
  u64 touched = kCounts ? (bytes <= 32 ? sectors(address, warp.active) : 2 * sectors(address, warp.active)) : 0;
  bool resolved = (low_bits & (bytes - 1)) == 0 && resolve_all<kSpace>(warp, lowest, highest, bytes, write, address);
  if (__builtin_expect(!resolved, 0) && !resolve_each<kSpace>(warp, op, bytes, write, address)) return false;
  if (kCounts) warp.global_bytes += 32 * touched;
  bool in_order = resolved && kSpace != At::kLocal;
  if (in_order && strayed == 0 && warp.active == kAllLanes) access.shape = Access::Shape::kRow;
  if (in_order && lowest == highest) access.shape = Access::Shape::kUniform;
  return true;
}

}  // namespace heddle::software::HEDDLE_LANES
