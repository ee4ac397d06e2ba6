// Logic, shifts, bit fields, counts and permutations.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

template <class T>
constexpr u32 kBits = sizeof(T) * 8;

struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <class T>
  static T apply(T a) {
    return a == 0;
  }
};

// Shift amounts above the width give what shifting bit by bit would.
struct ShiftLeft {
  template <class T>
  static T apply(T a, u32 by) {
    return by >= kBits<T> ? T(0) : static_cast<T>(a << (by & (kBits<T> - 1)));
  }
};
struct ShiftRight {
  template <class T>
  static T apply(T a, u32 by) {
    bool negative = T(-1) < T(0) && a < T(0);
    return by >= kBits<T> ? static_cast<T>(negative ? -1 : 0) : static_cast<T>(a >> (by & (kBits<T> - 1)));
  }
};

// shf: 32 bits out of the 64 of b:a.
u64 joined(u32 a, u32 b) {
  return u64{b} << 32 | a;
}
struct FunnelLeftWrap {
  static u32 apply(u32 a, u32 b, u32 by) { return static_cast<u32>(joined(a, b) << (by & 31) >> 32); }
};
struct FunnelLeftClamp {
  static u32 apply(u32 a, u32 b, u32 by) { return by >= 32 ? a : FunnelLeftWrap::apply(a, b, by); }
};
struct FunnelRightWrap {
  static u32 apply(u32 a, u32 b, u32 by) { return static_cast<u32>(joined(a, b) >> (by & 31)); }
};
struct FunnelRightClamp {
  static u32 apply(u32 a, u32 b, u32 by) { return by >= 32 ? b : FunnelRightWrap::apply(a, b, by); }
};

// Devices look at all of the position and length of a 64-bit field, though PTX says that only the low 8 bits count; of
// a 32-bit one they look at those.
template <class T>
u32 field_bound(u32 value) {
  return sizeof(T) == 8 ? value : value & 255;
}
template <class T>
T low_ones(u32 count) {
  return count >= kBits<T> ? T(-1) : static_cast<T>((T(1) << (count & (kBits<T> - 1))) - 1);
}

// bfe: `length` bits from `position` on, extended with the field's sign bit (or the highest bit of `a` where the field
// reaches beyond it) if the type is signed.
struct ExtractField {
  template <class T>
  static T apply(T a, u32 position, u32 length) {
    position = field_bound<T>(position), length = field_bound<T>(length);
    T field = ShiftRight::apply(a, position), mask = low_ones<T>(length);
    u32 last = length == 0 ? 0 : (length > kBits<T> ? kBits<T> : length) - 1;
    bool negative = T(-1) < T(0) && length != 0 && (field >> last & 1);
    return static_cast<T>((field & mask) | (negative ? ~mask : T(0)));
  }
};

u32 population(u64 a) {
  return static_cast<u32>(__builtin_popcountll(a));
}
struct Population {
  template <class T>
  static u32 apply(T a) {
    return population(a);
  }
};
struct LeadingZeros {
  static u32 apply(u32 a) { return a ? static_cast<u32>(__builtin_clz(a)) : 32; }
  static u32 apply(u64 a) { return a ? static_cast<u32>(__builtin_clzll(a)) : 64; }
};
// The place of the highest bit that is not a copy of the sign; all ones if there is none.
struct FindHighest {
  template <class T>
  static u32 apply(T a) {
    u64 value = static_cast<u64>(static_cast<T>(T(-1) < T(0) && a < T(0) ? ~a : a));
    return value ? 63 - static_cast<u32>(__builtin_clzll(value)) : ~0u;
  }
};
struct FindHighestShift {
  template <class T>
  static u32 apply(T a) {
    u32 place = FindHighest::apply(a);
    return place == ~0u ? place : kBits<T> - 1 - place;
  }
};
struct Reverse {
  static u32 apply(u32 a) {
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0F0F0F0F) | (a & 0x0F0F0F0F) << 4;
    return __builtin_bswap32(a);
  }
  static u64 apply(u64 a) { return u64{apply(static_cast<u32>(a))} << 32 | apply(static_cast<u32>(a >> 32)); }
};

// prmt: each nibble of the selector picks one of 8 bytes; its high bit repeats that byte's sign instead.
struct Permute {
  static u32 apply(u32 a, u32 b, u32 selector) {
    u64 bytes = joined(a, b);
    u32 result = 0;
    for (int i = 0; i < 4; ++i) {
      u32 nibble = selector >> (4 * i) & 15;
      u32 byte = static_cast<u32>(bytes >> (8 * (nibble & 7)) & 255);
      if (nibble & 8) byte = byte & 128 ? 255 : 0;
      result |= byte << (8 * i);
    }
    return result;
  }
};

// prmt in the modes that take their bytes by a rule: the selector's low two bits say from where on, or which.
enum class PermuteMode { kForward4, kBackward4, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };
template <PermuteMode kMode>
struct PermuteByRule {
  static u32 source(u32 from, u32 i) {
    switch (kMode) {
      case PermuteMode::kForward4:
        return (from + i) & 7;
      case PermuteMode::kBackward4:
        return (from - i) & 7;
      case PermuteMode::kReplicate8:
        return from;
      case PermuteMode::kEdgeLeft:
        return i > from ? i : from;
      case PermuteMode::kEdgeRight:
        return i < from ? i : from;
      case PermuteMode::kReplicate16:
        return 2 * (from & 1) + (i & 1);
    }
    return 0;
  }
  static u32 apply(u32 a, u32 b, u32 selector) {
    u32 result = 0;
    for (u32 i = 0; i < 4; ++i)
      result |= static_cast<u32>(joined(a, b) >> (8 * source(selector & 3, i)) & 255) << (8 * i);
    return result;
  }
};

// szext: the low `width` bits, extended. Widths above 32 count modulo 32 (.wrap) or as 32 (.clamp).
template <bool kWrap>
struct ExtendFrom {
  template <class T>
  static T apply(T a, u32 width) {
    width = kWrap ? width & 31 : width;
    if (width >= 32) return a;
    if (width == 0) return 0;
    return static_cast<T>(static_cast<T>(static_cast<u32>(a) << (32 - width)) >> (32 - width));
  }
};

// bmsk: `width` ones from bit `position` on.
template <bool kWrap>
struct BitMask {
  static u32 apply(u32 position, u32 width) {
    if (kWrap) position &= 31, width &= 31;
    u64 ones = width >= 32 ? 0xFFFFFFFFull : (u64{1} << width) - 1;
    return position >= 32 ? 0 : static_cast<u32>(ones << position);
  }
};

// fns: the place of the n-th set bit from bit `base` on, upwards or for negative n downwards; all ones if there is
// none.
struct FindNthSet {
  static u32 apply(u32 mask, u32 base, s32 n) {
    if (base > 31) return ~0u;
    if (n == 0) return mask >> base & 1 ? base : ~0u;
    s32 step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;
    for (s32 at = static_cast<s32>(base); at >= 0 && at < 32; at += step)
      if (mask >> at & 1 && --left == 0) return static_cast<u32>(at);
    return ~0u;
  }
};

// cvt.pack.sat: a and b, clamped into T, side by side: b lowest; bytes push the low part of c up.
template <class T>
struct PackSaturated {
  static u32 clamp(s32 a) {
    constexpr s32 kMost = T(-1) < T(0) ? (1 << (kBits<T> - 1)) - 1 : (1 << kBits<T>)-1;
    constexpr s32 kLeast = T(-1) < T(0) ? -kMost - 1 : 0;
    return static_cast<u32>(a > kMost ? kMost : a < kLeast ? kLeast : a) & ((1u << kBits<T>)-1);
  }
  static u32 apply(s32 a, s32 b) { return clamp(a) << kBits<T> | clamp(b); }
  static u32 apply(s32 a, s32 b, u32 c) { return c << (2 * kBits<T>) | apply(a, b); }
};

// bfi: `a` with its low `length` bits put into `b` at `position`.
template <class T>
void insert_field(Warp& warp, const Op& op) {
  const Slot<T>* a = lanes_of<T>(warp, op.a);
  const Slot<T>* b = lanes_of<T>(warp, op.b);
  const u32* positions = lanes_of<u32>(warp, op.c);
  const u32* lengths = lanes_of<u32>(warp, op.extra);
  write_lanes<T>(warp, op.d, [=](u32 lane) {
    u32 position = field_bound<T>(positions[lane]);
    T ones = low_ones<T>(field_bound<T>(lengths[lane]));
    u32 shift = position & (kBits<T> - 1);
    T mask = position >= kBits<T> ? T(0) : static_cast<T>(ones << shift);
    return static_cast<T>((a[lane] << shift & mask) | (b[lane] & ~mask));
  });
}

// lop3: any function of three bits, as a table of 8 in imm.
void logic3(Warp& warp, const Op& op) {
  const u32* a = lanes_of<u32>(warp, op.a);
  const u32* b = lanes_of<u32>(warp, op.b);
  const u32* c = lanes_of<u32>(warp, op.c);
  u32 term[8];
  for (u32 i = 0; i < 8; ++i) term[i] = op.imm >> i & 1 ? ~0u : 0;
  write_lanes<u32>(warp, op.d, [&](u32 lane) {
    u32 x = a[lane], y = b[lane], z = c[lane];
    return (~x & ~y & ~z & term[0]) | (~x & ~y & z & term[1]) | (~x & y & ~z & term[2]) | (~x & y & z & term[3]) |
           (x & ~y & ~z & term[4]) | (x & ~y & z & term[5]) | (x & y & ~z & term[6]) | (x & y & z & term[7]);
  });
}

template <class F>
void predicate_logic(Warp& warp, const Op& op) {
  write_predicate(warp, op.d, F::apply(predicate(warp, op.a), predicate(warp, op.b)));
}
void predicate_not(Warp& warp, const Op& op) {
  write_predicate(warp, op.d, ~predicate(warp, op.a));
}

// lop3.or, lop3.and d|p, a, b, c, table, q: also p = (d != 0) combined with q, which is in extra.
template <class F>
void logic3_predicate(Warp& warp, const Op& op) {
  alignas(64) u32 result[kLanes];
  const u32* sources[] = {lanes_of<u32>(warp, op.a), lanes_of<u32>(warp, op.b), lanes_of<u32>(warp, op.c)};
  for (u32 lane = 0; lane < kLanes; ++lane) {
    result[lane] = 0;
    for (u32 bit = 0; bit < 32; ++bit) {
      u32 index =
          (sources[0][lane] >> bit & 1) << 2 | (sources[1][lane] >> bit & 1) << 1 | (sources[2][lane] >> bit & 1);
      result[lane] |= static_cast<u32>(op.imm >> index & 1) << bit;
    }
  }
  u32 holds = F::apply(mask_of([&](u32 lane) { return result[lane] != 0; }), predicate(warp, op.extra));
  if (op.d != Op::kNone) write_lanes<u32>(warp, op.d, [&](u32 lane) { return result[lane]; });
  write_predicate(warp, op.target, holds);
}

constexpr Width kP = Width::kPredicate;

constexpr Row kRows[] = {
    binary<And, u16>("and.b16"),
    binary<And, u32>("and.b32"),
    binary<And, u64>("and.b64"),
    binary<Or, u16>("or.b16"),
    binary<Or, u32>("or.b32"),
    binary<Or, u64>("or.b64"),
    binary<Xor, u16>("xor.b16"),
    binary<Xor, u32>("xor.b32"),
    binary<Xor, u64>("xor.b64"),
    unary<Not, u16>("not.b16"),
    unary<Not, u32>("not.b32"),
    unary<Not, u64>("not.b64"),
    unary<LogicalNot, u16>("cnot.b16"),
    unary<LogicalNot, u32>("cnot.b32"),
    unary<LogicalNot, u64>("cnot.b64"),
    {"and.pred", predicate_logic<And>, kP, kP, kP},
    {"or.pred", predicate_logic<Or>, kP, kP, kP},
    {"xor.pred", predicate_logic<Xor>, kP, kP, kP},
    {"not.pred", predicate_not, kP, kP},
    binary<ShiftLeft, u16, u16, u32>("shl.b16"),
    binary<ShiftLeft, u32, u32, u32>("shl.b32"),
    binary<ShiftLeft, u64, u64, u32>("shl.b64"),
    binary<ShiftRight, u16, u16, u32>("shr.b16"),
    binary<ShiftRight, u32, u32, u32>("shr.b32"),
    binary<ShiftRight, u64, u64, u32>("shr.b64"),
    binary<ShiftRight, u16, u16, u32>("shr.u16"),
    binary<ShiftRight, u32, u32, u32>("shr.u32"),
    binary<ShiftRight, u64, u64, u32>("shr.u64"),
    binary<ShiftRight, s16, s16, u32>("shr.s16"),
    binary<ShiftRight, s32, s32, u32>("shr.s32"),
    binary<ShiftRight, s64, s64, u32>("shr.s64"),
    ternary<FunnelLeftWrap, u32>("shf.l.wrap.b32"),
    ternary<FunnelLeftClamp, u32>("shf.l.clamp.b32"),
    ternary<FunnelRightWrap, u32>("shf.r.wrap.b32"),
    ternary<FunnelRightClamp, u32>("shf.r.clamp.b32"),
    ternary<ExtractField, u32, u32, u32, u32>("bfe.u32"),
    ternary<ExtractField, s32, s32, u32, u32>("bfe.s32"),
    ternary<ExtractField, u64, u64, u32, u32>("bfe.u64"),
    ternary<ExtractField, s64, s64, u32, u32>("bfe.s64"),
    {"bfi.b32", insert_field<u32>, Width::k32, Width::k32, Width::k32, Width::k32},
    {"bfi.b64", insert_field<u64>, Width::k64, Width::k64, Width::k64, Width::k32},
    unary<Population, u32, u32>("popc.b32"),
    unary<Population, u32, u64>("popc.b64"),
    unary<LeadingZeros, u32, u32>("clz.b32"),
    unary<LeadingZeros, u32, u64>("clz.b64"),
    unary<FindHighest, u32, u32>("bfind.u32"),
    unary<FindHighest, u32, s32>("bfind.s32"),
    unary<FindHighest, u32, u64>("bfind.u64"),
    unary<FindHighest, u32, s64>("bfind.s64"),
    unary<FindHighestShift, u32, u32>("bfind.shiftamt.u32"),
    unary<FindHighestShift, u32, s32>("bfind.shiftamt.s32"),
    unary<FindHighestShift, u32, u64>("bfind.shiftamt.u64"),
    unary<FindHighestShift, u32, s64>("bfind.shiftamt.s64"),
    unary<Reverse, u32>("brev.b32"),
    unary<Reverse, u64>("brev.b64"),
    ternary<Permute, u32>("prmt.b32"),
    ternary<PermuteByRule<PermuteMode::kForward4>, u32>("prmt.b32.f4e"),
    ternary<PermuteByRule<PermuteMode::kBackward4>, u32>("prmt.b32.b4e"),
    ternary<PermuteByRule<PermuteMode::kReplicate8>, u32>("prmt.b32.rc8"),
    ternary<PermuteByRule<PermuteMode::kEdgeLeft>, u32>("prmt.b32.ecl"),
    ternary<PermuteByRule<PermuteMode::kEdgeRight>, u32>("prmt.b32.ecr"),
    ternary<PermuteByRule<PermuteMode::kReplicate16>, u32>("prmt.b32.rc16"),
    binary<ExtendFrom<false>, u32>("szext.clamp.u32"),
    binary<ExtendFrom<false>, s32, s32, u32>("szext.clamp.s32"),
    binary<ExtendFrom<true>, u32>("szext.wrap.u32"),
    binary<ExtendFrom<true>, s32, s32, u32>("szext.wrap.s32"),
    binary<BitMask<false>, u32>("bmsk.clamp.b32"),
    binary<BitMask<true>, u32>("bmsk.wrap.b32"),
    ternary<FindNthSet, u32, u32, u32, s32>("fns.b32"),
    binary<PackSaturated<u16>, u32, s32>("cvt.pack.sat.u16.s32"),
    binary<PackSaturated<s16>, u32, s32>("cvt.pack.sat.s16.s32"),
    ternary<PackSaturated<u8>, u32, s32, s32, u32>("cvt.pack.sat.u8.s32.b32"),
    ternary<PackSaturated<s8>, u32, s32, s32, u32>("cvt.pack.sat.s8.s32.b32"),
    {"lop3.or.b32", logic3_predicate<Or>, Width::k32, Width::k32, Width::k32, Width::k32},
    {"lop3.and.b32", logic3_predicate<And>, Width::k32, Width::k32, Width::k32, Width::k32},
    {"lop3.b32", logic3, Width::k32, Width::k32, Width::k32, Width::k32},
};

}  // namespace

std::span<const Row> bit_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
