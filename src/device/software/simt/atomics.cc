// atom and red: real atomic operations of the host, since blocks of other threads and processes share global memory.
// Names are atom.<operation>.<type>, whatever the state space. Lanes act one after the other, the lowest first.

#define HEDDLE_LANES common
#include <bit>
#include <cstring>

#include "device/software/simt/instruction_families.h"
#include "device/software/simt/lanes/access.h"
#include "device/software/simt/lanes/half.h"

namespace heddle::software::common {
namespace {

// What replaces `old`, given the operands b and (for cas) c.
struct Add {
  template <class T>
  static T apply(T old, T b, T) {
    return static_cast<T>(old + b);
  }
};
struct AddHalf {
  template <class T>
  static T apply(T old, T b, T) {
    return nearest<T>(fused_to_odd(static_cast<f64>(widen(old)), 1.0, static_cast<f64>(widen(b))));
  }
};
struct Minimum {
  template <class T>
  static T apply(T old, T b, T) {
    return b < old ? b : old;
  }
};
struct Maximum {
  template <class T>
  static T apply(T old, T b, T) {
    return b > old ? b : old;
  }
};
struct Increment {
  template <class T>
  static T apply(T old, T b, T) {
    return old >= b ? T(0) : static_cast<T>(old + 1);
  }
};
struct Decrement {
  template <class T>
  static T apply(T old, T b, T) {
    return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
};
struct And {
  template <class T>
  static T apply(T old, T b, T) {
    return static_cast<T>(old & b);
  }
};
struct Or {
  template <class T>
  static T apply(T old, T b, T) {
    return static_cast<T>(old | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T old, T b, T) {
    return static_cast<T>(old ^ b);
  }
};
struct Exchange {
  template <class T>
  static T apply(T, T b, T) {
    return b;
  }
};
struct CompareAndSwap {
  template <class T>
  static T apply(T old, T b, T c) {
    return old == b ? c : old;
  }
};

template <class T>
struct BitsOf {
  using type = std::conditional_t<sizeof(T) == 8, u64, std::conditional_t<sizeof(T) == 2, u16, u32>>;
};

// Replaces *at by F(*at, b, c) in one indivisible step; returns what was there. Compares bits, not values, so that NaN
// does not loop for ever.
template <class F, class T>
T replace(u64 host, T b, T c) {
  using Bits = typename BitsOf<T>::type;
  auto* at = reinterpret_cast<Bits*>(host);
  Bits old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  for (;;) {
    auto next = std::bit_cast<Bits>(F::apply(std::bit_cast<T>(old), b, c));
    if (__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return std::bit_cast<T>(old);
  }
}

// The same for memory that only the running thread sees: that of the block.
template <class F, class T>
T replace_private(u64 host, T b, T c) {
  T old;
  std::memcpy(&old, reinterpret_cast<void*>(host), sizeof old);
  T next = F::apply(old, b, c);
  std::memcpy(reinterpret_cast<void*>(host), &next, sizeof next);
  return old;
}

bool locate_in(At space, Warp& warp, const Op& op, u64 bytes, Access& access) {
  switch (space) {
    case At::kGlobal:
      return locate_lanes<At::kGlobal>(warp, op, bytes, true, access);
    case At::kShared:
      return locate_lanes<At::kShared>(warp, op, bytes, true, access);
    default:
      return locate_lanes<At::kGeneric>(warp, op, bytes, true, access);
  }
}

template <class F, class T>
void atomic(Warp& warp, const Op& op) {
  Access access;
  auto space = static_cast<At>(op.count);
  if (!locate_in(space, warp, op, sizeof(T), access)) return;
  const Slot<T>* b = lanes_of<T>(warp, op.b);
  const Slot<T>* c = op.c == Op::kNone ? b : lanes_of<T>(warp, op.c);
  for (u32 rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<u32>(std::countr_zero(rest));
    T x = read<T>(b, lane), y = read<T>(c, lane);
    T old =
        space == At::kShared ? replace_private<F, T>(access.host[lane], x, y) : replace<F, T>(access.host[lane], x, y);
    if (op.d != Op::kNone) lanes_of<T>(warp, op.d)[lane] = to_slot<T>(old);
  }
}

template <class F, class T>
constexpr Row row(const char* name) {
  return {name, atomic<F, T>, kWidth<T>, kWidth<T>, kWidth<T>};
}

constexpr Row kRows[] = {
    row<Add, u32>("atom.add.u32"),
    row<Add, u32>("atom.add.s32"),
    row<Add, u64>("atom.add.u64"),
    row<Add, u64>("atom.add.s64"),
    row<Add, f32>("atom.add.f32"),
    row<Add, f64>("atom.add.f64"),
    row<AddHalf, Half>("atom.add.f16"),
    row<AddHalf, Brain>("atom.add.bf16"),
    row<OnBoth<AddHalf, Half>, u32>("atom.add.f16x2"),
    row<OnBoth<AddHalf, Brain>, u32>("atom.add.bf16x2"),
    row<Minimum, u32>("atom.min.u32"),
    row<Minimum, s32>("atom.min.s32"),
    row<Minimum, u64>("atom.min.u64"),
    row<Minimum, s64>("atom.min.s64"),
    row<Maximum, u32>("atom.max.u32"),
    row<Maximum, s32>("atom.max.s32"),
    row<Maximum, u64>("atom.max.u64"),
    row<Maximum, s64>("atom.max.s64"),
    row<Increment, u32>("atom.inc.u32"),
    row<Decrement, u32>("atom.dec.u32"),
    row<And, u32>("atom.and.b32"),
    row<And, u64>("atom.and.b64"),
    row<Or, u32>("atom.or.b32"),
    row<Or, u64>("atom.or.b64"),
    row<Xor, u32>("atom.xor.b32"),
    row<Xor, u64>("atom.xor.b64"),
    row<Exchange, u32>("atom.exch.b32"),
    row<Exchange, u64>("atom.exch.b64"),
    row<CompareAndSwap, u16>("atom.cas.b16"),
    row<CompareAndSwap, u32>("atom.cas.b32"),
    row<CompareAndSwap, u64>("atom.cas.b64"),
};

}  // namespace

std::span<const Row> atomic_rows() {
  return kRows;
}

}  // namespace heddle::software::common
