#include "device/software/simt/stack.h"

#define HEDDLE_LANES common
#include <bit>
#include <cstring>

#include "device/software/simt/control.h"
#include "device/software/simt/lanes/access.h"

namespace heddle::software {
namespace {

using common::u32;
using common::u64;

u32 end_of_stack(const Warp& warp) {
  return (warp.block->local_bytes - kStackMarkBytes) & ~(kStackMarkBytes - 1);
}

std::byte* mark_of(const Warp& warp, u32 lane) {
  return reinterpret_cast<std::byte*>(common::local_base(warp, lane)) + end_of_stack(warp);
}
// A program may have overwritten it: never beyond the end.
u32 mark(const Warp& warp, u32 lane) {
  u32 value;
  std::memcpy(&value, mark_of(warp, lane), sizeof value);
  return value < end_of_stack(warp) ? value : end_of_stack(warp);
}
void set_mark(const Warp& warp, u32 lane, u32 value) {
  std::memcpy(mark_of(warp, lane), &value, sizeof value);
}

u64 read(const Warp& warp, u32 offset, u32 lane, bool wide) {
  return wide ? common::lanes_of<u64>(warp, offset)[lane] : common::lanes_of<u32>(warp, offset)[lane];
}
void write(const Warp& warp, u32 offset, u32 lane, bool wide, u32 value) {
  if (wide) {
    common::lanes_of<u64>(warp, offset)[lane] = value;
  } else {
    common::lanes_of<u32>(warp, offset)[lane] = value;
  }
}

u32 end_of_frame(const Warp& warp) {
  return warp.frame->local_base + warp.frame->function->local_bytes;
}

void overflow(Warp& warp, const Op& op, u32 lane) {
  raise(warp, op, lane, kCudaHardwareStackError,
        stringf("stack overflow: %u bytes of local memory a thread, cudaLimitStackSize raises the limit",
                warp.block->local_bytes));
}

template <class Visit>
void for_each_lane(const Warp& warp, Visit visit) {
  for (u32 rest = warp.active; rest; rest &= rest - 1)
    if (!visit(static_cast<u32>(std::countr_zero(rest)))) return;
}

}  // namespace

void start_stack(Warp& warp, const Op&) {
  for_each_lane(warp, [&](u32 lane) {
    set_mark(warp, lane, end_of_stack(warp));
    return true;
  });
}

void enter_stack(Warp& warp, const Op& op) {
  for_each_lane(warp, [&](u32 lane) {
    common::lanes_of<u32>(warp, op.d)[lane] = mark(warp, lane);
    if (end_of_frame(warp) <= mark(warp, lane)) return true;
    overflow(warp, op, lane);
    return false;
  });
}

void restore_stack(Warp& warp, const Op& op) {
  for_each_lane(warp, [&](u32 lane) {
    const u64 saved = read(warp, op.a, lane, op.imm != 0);
    if (saved >= mark(warp, lane) && saved <= end_of_stack(warp)) {
      set_mark(warp, lane, static_cast<u32>(saved));
      return true;
    }
    raise(warp, op, lane, kCudaLaunchFailure, "stackrestore of what stacksave did not give");
    return false;
  });
}

void save_stack(Warp& warp, const Op& op) {
  for_each_lane(warp, [&](u32 lane) {
    write(warp, op.d, lane, op.imm != 0, mark(warp, lane));
    return true;
  });
}

void allocate_on_stack(Warp& warp, const Op& op) {
  for_each_lane(warp, [&](u32 lane) {
    const u64 bytes = read(warp, op.a, lane, op.imm != 0);
    const u32 top = mark(warp, lane), bottom = end_of_frame(warp);
    const u32 place = bytes <= top ? (top - static_cast<u32>(bytes)) & ~(op.c - 1) : 0;
    if (bytes > top || place < bottom) {
      overflow(warp, op, lane);
      return false;
    }
    set_mark(warp, lane, place);
    write(warp, op.d, lane, op.imm != 0, place);
    return true;
  });
}

}  // namespace heddle::software
