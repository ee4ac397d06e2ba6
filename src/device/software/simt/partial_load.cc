#include "device/software/simt/partial_load.h"

#define HEDDLE_LANES common
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "device/software/simt/lanes/access.h"

namespace heddle::software {

void load_partially(Warp& warp, const Op& op) {
  using common::u32;
  using common::u64;
  alignas(64) u64 address[kLanes];
  common::form_addresses<At::kGlobal>(warp, op, address);
  u32 ignored = op.b == Op::kNone ? 0 : common::predicate(warp, op.b);
  u32 whole = op.count * 4u;
  for (u32 rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<u32>(std::countr_zero(rest));
    u32 bytes = op.c == Op::kNone ? whole : std::min(common::lanes_of<u32>(warp, op.c)[lane], whole);
    if (ignored >> lane & 1) bytes = 0;
    std::array<u32, 4> words = {};
    if (bytes > 0) {
      u64 host = common::resolve<At::kGlobal>(warp, lane, address[lane], bytes, false);
      if (host == 0 || address[lane] % whole)
        return raise_access_fault(warp, op, lane, address[lane], bytes, false, host != 0);
      std::memcpy(words.data(), reinterpret_cast<const void*>(host), bytes);
    }
    for (u32 i = 0; i < op.count; ++i) common::lanes_of<u32>(warp, warp.block->operands[op.extra + i])[lane] = words[i];
  }
  warp.global_bytes += common::traffic(address, warp.active, 1);
}

}  // namespace heddle::software
