#pragma once

// Addresses of the lanes of a memory instruction: formed, checked, resolved to host addresses. Every access is checked
// for bounds and alignment before it happens; one that fails faults the block and nothing of it happens.

#include "device/software/simt/access_fault.h"
#include "device/software/simt/lanes/lanes.h"
#include "device/software/simt/lanes/space.h"

namespace heddle::software::HEDDLE_LANES {

// The address of each lane within its space, as the instruction forms it. Shared, local and parameter addresses are 32
// bits wide and wrap there.
template <At kSpace>
[[gnu::always_inline]] inline void form_addresses(const Warp& warp, const Op& op, u64* address) {
  u64 offset = static_cast<u64>(op.imm);
  if (op.flags & kFrameRelative) {
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = static_cast<u32>(warp.frame->local_base + offset);
  } else if (op.flags & kAddress64) {
    const u64* base = lanes_of<u64>(warp, op.a);
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + offset;
  } else {
    const u32* base = lanes_of<u32>(warp, op.a);
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = base[lane] + offset;
  }
  if constexpr (kSpace != At::kGlobal && kSpace != At::kGeneric)
    for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = static_cast<u32>(address[lane]);
}

// Whether [address, address + bytes) lies below `limit`.
[[gnu::always_inline]] inline bool below(u64 address, u64 bytes, u64 limit) {
  return address < limit && bytes <= limit - address;
}

// The host address of one lane's access, 0 if it may not be touched. Parameters can only be read.
template <At kSpace>
[[gnu::always_inline]] inline u64 resolve(const Warp& warp, u32 lane, u64 address, u64 bytes, bool write) {
  const BlockState& block = *warp.block;
  auto shared = [&](u64 offset) {
    return below(offset, bytes, block.shared_bytes) ? reinterpret_cast<u64>(block.shared) + offset : 0;
  };
  auto local = [&](u64 offset) {
    u64 base = reinterpret_cast<u64>(warp.local) + u64{lane} * block.local_stride;
    return below(offset, bytes, block.local_bytes) ? base + offset : 0;
  };
  auto parameter = [&](u64 offset) {
    bool inside = !write && below(offset, bytes, block.kernel->parameter_bytes);
    return inside ? reinterpret_cast<u64>(block.parameters) + offset : 0;
  };
  switch (kSpace) {
    case At::kGlobal:
      return block.memory->contains(address, bytes) ? address : 0;
    case At::kShared:
      return shared(address);
    case At::kLocal:
      return local(address);
    case At::kParameter:
      return parameter(address);
    case At::kGeneric:
      break;
  }
  if (address < kSharedWindow) return block.memory->contains(address, bytes) ? address : 0;
  if (address < kLocalWindow) return shared(address - kSharedWindow);
  if (address < kParameterWindow) return local(address - kLocalWindow);
  return parameter(address - kParameterWindow);
}

// How many 32-byte sectors the active lanes touch. Neighbouring lanes that touch the same one count once; lanes farther
// apart that meet in a sector count twice.
[[gnu::always_inline]] inline u64 sectors(const u64* address, u32 active, u64 bytes) {
  u64 count = 0, previous = ~u64{0};
  for (; active; active &= active - 1) {
    u64 a = address[__builtin_ctz(active)];
    u64 first = a / 32, last = (a + bytes - 1) / 32;
    count += last - first + (first != previous);
    previous = last;
  }
  return count;
}

// Forms, checks and resolves: host[lane] for the active lanes. False: the block has faulted.
template <At kSpace>
[[gnu::always_inline]] inline bool locate(Warp& warp, const Op& op, u64 bytes, bool write, u64* host) {
  alignas(64) u64 address[kLanes];
  form_addresses<kSpace>(warp, op, address);
  for (u32 rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<u32>(__builtin_ctz(rest));
    host[lane] = resolve<kSpace>(warp, lane, address[lane], bytes, write);
    if (__builtin_expect(host[lane] != 0 && (address[lane] & (bytes - 1)) == 0, 1)) continue;
    raise_access_fault(warp, op, lane, address[lane], bytes, write, host[lane] != 0);
    return false;
  }
  if constexpr (kSpace == At::kGlobal || kSpace == At::kGeneric)
    warp.global_bytes += 32 * sectors(address, warp.active, bytes);
  if (op.flags & kPolling) ++warp.polls;
  return true;
}

// Whether all 32 lanes run and access neighbouring elements of `bytes` in global memory, all of it mapped; then `first`
// is the address of the first. The common case, worth its own path.
[[gnu::always_inline]] inline bool is_row(Warp& warp, const Op& op, u64 bytes, u64& first) {
  if (warp.active != kAllLanes || !(op.flags & kAddress64)) return false;
  const u64* base = lanes_of<u64>(warp, op.a);
  u64 start = base[0], strayed = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) strayed |= base[lane] ^ (start + lane * bytes);
  first = start + static_cast<u64>(op.imm);
  if (strayed || (first & (bytes - 1)) || !warp.block->memory->contains(first, kLanes * bytes)) return false;
  warp.global_bytes += ((first + kLanes * bytes - 1) / 32 - first / 32 + 1) * 32;
  if (op.flags & kPolling) ++warp.polls;
  return true;
}

}  // namespace heddle::software::HEDDLE_LANES
