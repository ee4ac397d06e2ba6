#pragma once

// Addresses of the lanes of a memory instruction: formed, checked, resolved to host addresses. Every access is checked
// for bounds and alignment before any of it happens; one that fails faults the block. Where the lanes' addresses follow
// each other, or are the same, the first says it all (locate_pattern); else the lowest and the highest address of the
// warp are checked (locate_lanes), and lane by lane only where that does not settle it.

#include "device/software/simt/access_fault.h"
#include "device/software/simt/lanes/lanes.h"
#include "device/software/simt/lanes/space.h"

namespace heddle::software::HEDDLE_LANES {

// Where the lanes of a warp access memory. Groups are of eight lanes: blocks of threads are often 8 or 16 wide.
struct Access {
  enum class Shape {
    kScattered,  // host: of each lane; inactive ones have the first active one's, so that loads need not look at the
                 // mask
    kUniform,    // host[0]: of all lanes
    kRow,        // host[0]: of lane 0; each lane is behind the one before. Loads of inactive lanes may go there too
    kRuns,       // host[g]: of group g, a row each; all lanes run
    kSplats,     // host[g]: of all lanes of group g; all lanes run
  };
  Shape shape = Shape::kScattered;
  alignas(64) u64 host[kLanes];
};

inline constexpr u32 kGroup = 8;

// Where an access to shared memory went before, if its address is the same in all blocks (Op::b). It lies among the
// registers of its warp and holds as long as the same lanes run.
struct KnownAccess {
  u32 active;  // 0: none yet
  Access::Shape shape;
  u64 host[kLanes / kGroup];
};
static_assert(sizeof(KnownAccess) <= kKnownAccessBytes);
template <class T>
using Group [[gnu::vector_size(kGroup * sizeof(T))]] = T;

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

// The host address of [address, address + bytes), 0 if not all of it may be touched. Parameters can only be read.
template <At kSpace>
[[gnu::always_inline]] inline u64 resolve_inside(const Warp& warp, u32 lane, u64 address, u64 bytes, bool write) {
  const BlockState& block = *warp.block;
  if constexpr (kSpace == At::kGlobal) {
    return block.memory->contains(address, bytes) ? address : 0;
  } else if constexpr (kSpace == At::kShared) {
    return below(address, bytes, block.shared_bytes) ? reinterpret_cast<u64>(block.shared) + address : 0;
  } else if constexpr (kSpace == At::kLocal) {
    return below(address, bytes, block.local_bytes) ? local_base(warp, lane) + address : 0;
  } else if constexpr (kSpace == At::kParameter) {
    bool inside = !write && below(address, bytes, block.kernel->parameter_bytes);
    return inside ? reinterpret_cast<u64>(block.parameters) + address : 0;
  } else {
    if (address < kSharedWindow) return resolve_inside<At::kGlobal>(warp, lane, address, bytes, write);
    if (address < kLocalWindow) return resolve_inside<At::kShared>(warp, lane, address - kSharedWindow, bytes, write);
    if (address < kParameterWindow) return resolve_inside<At::kLocal>(warp, lane, address - kLocalWindow, bytes, write);
    if (address >= kFunctionWindow) return 0;
    return resolve_inside<At::kParameter>(warp, lane, address - kParameterWindow, bytes, write);
  }
}

// The same for one lane's access: reads beside a buffer find zeros.
template <At kSpace>
[[gnu::always_inline]] inline u64 resolve(const Warp& warp, u32 lane, u64 address, u64 bytes, bool write) {
  u64 host = resolve_inside<kSpace>(warp, lane, address, bytes, write);
  bool global = kSpace == At::kGlobal || (kSpace == At::kGeneric && address < kSharedWindow);
  if (host || !global || write) return host;
  return warp.block->memory->is_beside(address, bytes) ? reinterpret_cast<u64>(kNothing) : 0;
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

// The bytes of the 32-byte sectors that the lanes touch. Neighbouring lanes that touch the same one count once; lanes
// farther apart that meet in a sector count twice. Accesses are aligned, so that each lies in one sector, or fills
// some.
[[gnu::always_inline]] inline u64 traffic(const u64* address, u32 active, u64 bytes) {
  u64 unit = bytes < 32 ? 32 : bytes, changes = 0;
  if (active == kAllLanes) {
    for (u32 lane = 1; lane < kLanes; ++lane) changes += address[lane] / 32 != address[lane - 1] / 32;
    return (changes + 1) * unit;
  }
  u64 previous = ~u64{0};
  for (; active; active &= active - 1) {
    u64 sector = address[__builtin_ctz(active)] / 32;
    changes += sector != previous;
    previous = sector;
  }
  return changes * unit;
}

// Whether the base of each active lane is its number, shifted, beyond `start`.
template <class T>
[[gnu::always_inline]] inline bool is_row(const T* base, u32 active, T start, u32 shift) {
  T strayed = 0;
  if (active == kAllLanes) {
    for (u32 lane = 0; lane < kLanes; ++lane) strayed |= base[lane] ^ (start + (T{lane} << shift));
  } else {
    for (u32 lane = 0; lane < kLanes; ++lane)
      strayed |= active >> lane & 1 ? base[lane] ^ (start + (T{lane} << shift)) : T(0);
  }
  return strayed == 0;
}
template <class T>
[[gnu::always_inline]] inline bool is_uniform(const T* base, u32 active, T value) {
  T strayed = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) strayed |= active >> lane & 1 ? base[lane] ^ value : T(0);
  return strayed == 0;
}

// Whether the bases of each group are these steps beyond its first; all lanes run.
template <class T>
[[gnu::always_inline]] inline bool groups_step_by(const T* base, const Group<T>& steps) {
  Group<T> strayed = {};
  for (u32 group = 0; group < kLanes; group += kGroup)
    strayed |= *reinterpret_cast<const Group<T>*>(base + group) ^ (steps + base[group]);
  T any = 0;
  for (u32 lane = 0; lane < kGroup; ++lane) any |= strayed[lane];
  return any == 0;
}

// The pattern of the lanes' bases for accesses of 1 << shift bytes. A few lanes say which one it can be. Groups count
// only if `groups` says so.
template <class T>
[[gnu::always_inline]] inline Access::Shape shape_of(const T* base, u32 active, u32 shift, bool groups) {
  using Shape = Access::Shape;
  auto first = static_cast<u32>(__builtin_ctz(active)), last = 31 - static_cast<u32>(__builtin_clz(active));
  T spread = base[last] - base[first];
  if (spread == 0 && is_uniform<T>(base, active, base[first])) return Shape::kUniform;
  if (spread == T{last - first} << shift && is_row<T>(base, active, base[first] - (T{first} << shift), shift))
    return Shape::kRow;
  if (!groups || active != kAllLanes) return Shape::kScattered;
  if (base[1] == base[0]) return groups_step_by<T>(base, Group<T>{}) ? Shape::kSplats : Shape::kScattered;
  bool runs = base[1] - base[0] == T{1} << shift && groups_step_by<T>(base, Group<T>{0, 1, 2, 3, 4, 5, 6, 7} << shift);
  return runs ? Shape::kRuns : Shape::kScattered;
}

// The traffic of `count` rows of `lanes` lanes each.
[[gnu::always_inline]] inline u64 traffic_of_rows(const u64* first, u32 count, u64 lanes, u64 step, u64 bytes) {
  u64 shift = bytes <= 32 ? 5 : 6, units = 0, previous = ~u64{0};
  for (u32 i = 0; i < count; ++i) {
    u64 from = first[i] >> shift, to = (first[i] + (lanes - 1) * step) >> shift;
    units += to - from + (from != previous ? 1 : 0);
    previous = to;
  }
  return units << shift;
}

// Counts traffic of one warp. All of it is where its first byte is: a pattern spans a part of a buffer.
[[gnu::always_inline]] inline void count_traffic(Warp& warp, u64 address, u64 bytes) {
  warp.global_bytes += bytes;
  if (warp.block->memory->on_host(address)) warp.host_bytes += bytes;
}

// The same of lanes that may be anywhere: each has an equal part in it.
[[gnu::always_inline]] inline void count_scattered(Warp& warp, const u64* address, u64 bytes) {
  warp.global_bytes += bytes;
  u32 on_host = 0;
  for (u32 lanes = warp.active; lanes; lanes &= lanes - 1)
    on_host += warp.block->memory->on_host(address[__builtin_ctz(lanes)]);
  if (on_host) warp.host_bytes += bytes * on_host / static_cast<u32>(__builtin_popcount(warp.active));
}

// Of a row of which only some lanes run.
[[gnu::noinline]] inline u64 traffic_of_part(u64 first, u32 active, u64 bytes) {
  u64 address[kLanes];
  for (u32 lane = 0; lane < kLanes; ++lane) address[lane] = first + lane * bytes;
  return traffic(address, active, bytes);
}

// Locates an access whose lanes' addresses, each `base` and an offset, have a pattern. False if they have none, or not
// all that it spans can be touched, a row's inactive lanes included: then locate_lanes() says more.
template <At kSpace, class T>
[[gnu::always_inline]] inline bool locate_pattern(Warp& warp, const Op& op, const T* base, u64 bytes, bool write,
                                                  Access& access) {
  constexpr bool kNarrow = kSpace == At::kShared || kSpace == At::kParameter;
  using Shape = Access::Shape;
  Shape shape = shape_of<T>(base, warp.active, static_cast<u32>(__builtin_ctzll(bytes)), op.count == 1);
  if (shape == Shape::kScattered) return false;
  bool grouped = shape == Shape::kRuns || shape == Shape::kSplats;
  u32 rows = grouped ? kLanes / kGroup : 1, lanes = grouped ? kGroup : kLanes;
  u64 step = shape == Shape::kRow || shape == Shape::kRuns ? bytes : 0;
  auto leader = static_cast<u32>(__builtin_ctz(warp.active));
  u64 address[kLanes / kGroup], lowest = ~u64{0}, highest = 0;
  for (u32 row = 0; row < rows; ++row) {
    u64 first = base[row * kGroup + leader] + static_cast<u64>(op.imm) - leader * step;
    address[row] = first = kNarrow ? static_cast<u32>(first) : first;
    lowest = first < lowest ? first : lowest;
    highest = first > highest ? first : highest;
    if (first & (bytes - 1)) return false;
  }
  if ((kSpace == At::kGeneric && lowest >= kLocalWindow) || highest - lowest > kMaxSpan) return false;
  u64 host = resolve_inside<kSpace>(warp, 0, lowest, highest - lowest + (lanes - 1) * step + bytes, write);
  if (host == 0) return false;
  for (u32 row = 0; row < rows; ++row) access.host[row] = address[row] + (host - lowest);
  access.shape = shape;
  if (kNarrow) return true;
  bool part = shape == Shape::kRow && warp.active != kAllLanes;
  count_traffic(
      warp, lowest,
      part ? traffic_of_part(address[0], warp.active, bytes) : traffic_of_rows(address, rows, lanes, step, bytes));
  return true;
}

// Forms, checks and resolves the address of each lane. False: the block has faulted. `bytes` is a power of two, of all
// elements of a lane together, at most 64.
template <At kSpace>
[[gnu::noinline]] bool locate_lanes(Warp& warp, const Op& op, u64 bytes, bool write, Access& access) {
  constexpr bool kCounts = kSpace == At::kGlobal || kSpace == At::kGeneric;
  u64* address = access.host;
  form_addresses<kSpace>(warp, op, address);
  u64 lowest = address[0], highest = address[0], low_bits = 0;
  for (u32 lane = 0; lane < kLanes; ++lane) {
    lowest = address[lane] < lowest ? address[lane] : lowest;
    highest = address[lane] > highest ? address[lane] : highest;
    low_bits |= address[lane];
  }
  u64 touched = kCounts ? traffic(address, warp.active, bytes) : 0;
  bool resolved = (low_bits & (bytes - 1)) == 0 && resolve_all<kSpace>(warp, lowest, highest, bytes, write, address);
  if (__builtin_expect(!resolved, 0) && !resolve_each<kSpace>(warp, op, bytes, write, address)) return false;
  if (op.flags & kPolling) ++warp.polls;
  if (touched) count_scattered(warp, address, touched);
  access.shape = Access::Shape::kScattered;
  return true;
}

// Locates the access of a whole warp to elements of global memory that follow each other, as most do. False if it is
// none: then locate() says more.
[[gnu::always_inline]] inline bool locate_row(Warp& warp, const Op& op, u64 bytes, bool write, u64& host) {
  if (warp.active != kAllLanes || op.count != 1 || !(op.flags & kAddress64)) return false;
  const u64* base = lanes_of<u64>(warp, op.a);
  const u64 first = base[0] + static_cast<u64>(op.imm), last = first + (kLanes - 1) * bytes;
  if (!is_row<u64>(base, kAllLanes, base[0], static_cast<u32>(__builtin_ctzll(bytes)))) return false;
  if ((first & (bytes - 1)) || !resolve_inside<At::kGlobal>(warp, 0, first, kLanes * bytes, write)) return false;
  if (op.flags & kPolling) ++warp.polls;
  count_traffic(warp, first, ((last >> 5) - (first >> 5) + 1) << 5);
  host = first;
  return true;
}

// The same, with the lanes' pattern where they have one. Local memory has none: each thread's is apart.
template <At kSpace>
[[gnu::noinline]] bool locate(Warp& warp, const Op& op, u64 bytes, bool write, Access& access) {
  constexpr bool kNarrow = kSpace == At::kShared || kSpace == At::kParameter;
  bool found = false;
  if constexpr (kSpace != At::kLocal) {
    if (op.flags & kAddress64) {
      found = locate_pattern<kSpace>(warp, op, lanes_of<u64>(warp, op.a), bytes, write, access);
    } else if (kNarrow) {
      found = locate_pattern<kSpace>(warp, op, lanes_of<u32>(warp, op.a), bytes, write, access);
    }
  }
  if (!found) return locate_lanes<kSpace>(warp, op, bytes, write, access);
  if (op.flags & kPolling) ++warp.polls;
  return true;
}

// What is known of an access whose address is the same in all blocks; null if that is not said of it, or nothing holds.
template <At kSpace>
[[gnu::always_inline]] inline const KnownAccess* known_access(const Warp& warp, const Op& op) {
  if (kSpace != At::kShared || !(op.flags & kSameAddress)) return nullptr;
  const auto* known = reinterpret_cast<const KnownAccess*>(warp.registers + op.b);
  return known->active == warp.active ? known : nullptr;
}

template <At kSpace>
[[gnu::always_inline]] inline void remember(Warp& warp, const Op& op, const Access& access) {
  if (kSpace != At::kShared || !(op.flags & kSameAddress) || access.shape == Access::Shape::kScattered) return;
  auto& known = *reinterpret_cast<KnownAccess*>(warp.registers + op.b);
  known.active = warp.active;
  known.shape = access.shape;
  for (u32 i = 0; i < kLanes / kGroup; ++i) known.host[i] = access.host[i];
}

}  // namespace heddle::software::HEDDLE_LANES
