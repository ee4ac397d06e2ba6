// Extended-precision integers: sums and products that leave a carry (.cc) or take one (addc, subc, madc). The carry of
// each lane is a predicate of its own, which the compiler of the kernel places in Op::extra. For sub it is the borrow.

#include "device/software/simt/lanes/families.h"
#include "device/software/simt/lanes/lanes.h"

namespace heddle::software::HEDDLE_LANES {
namespace {

struct Sum {
  static constexpr int kSources = 2;
  template <class T>
  static unsigned __int128 apply(T a, T b, T, u32 carry) {
    return static_cast<unsigned __int128>(a) + b + carry;
  }
};
// Bit sizeof(T)*8 of the result, as two's complement has it, is the borrow.
struct Difference {
  static constexpr int kSources = 2;
  template <class T>
  static unsigned __int128 apply(T a, T b, T, u32 borrow) {
    return static_cast<unsigned __int128>(a) - b - borrow;
  }
};
struct LowProductSum {
  static constexpr int kSources = 3;
  template <class T>
  static unsigned __int128 apply(T a, T b, T c, u32 carry) {
    return static_cast<unsigned __int128>(static_cast<T>(a * b)) + c + carry;
  }
};
template <class Signed>
struct HighProductSum {
  static constexpr int kSources = 3;
  template <class T>
  static unsigned __int128 apply(T a, T b, T c, u32 carry) {
    __int128 product = static_cast<__int128>(static_cast<Signed>(a)) * static_cast<Signed>(b);
    return static_cast<unsigned __int128>(static_cast<T>(product >> (sizeof(T) * 8))) + c + carry;
  }
};
struct HighProductSumU64 {
  static constexpr int kSources = 3;
  static unsigned __int128 apply(u64 a, u64 b, u64 c, u32 carry) {
    return (static_cast<unsigned __int128>(a) * b >> 64) + c + carry;
  }
};

template <class F, class T, bool kTakes, bool kLeaves>
void carry_handler(Warp& warp, const Op& op) {
  const Slot<T>* a = lanes_of<T>(warp, op.a);
  const Slot<T>* b = lanes_of<T>(warp, op.b);
  const Slot<T>* c = F::kSources == 3 ? lanes_of<T>(warp, op.c) : a;
  u32 carry_in = kTakes ? predicate(warp, op.extra) : 0;
  u32 carry_out = 0;
  alignas(64) T result[kLanes];
  for (u32 lane = 0; lane < kLanes; ++lane) {
    unsigned __int128 sum =
        F::apply(static_cast<T>(a[lane]), static_cast<T>(b[lane]), static_cast<T>(c[lane]), carry_in >> lane & 1);
    result[lane] = static_cast<T>(sum);
    carry_out |= static_cast<u32>(sum >> (sizeof(T) * 8) & 1) << lane;
  }
  write_lanes<T>(warp, op.d, [&](u32 lane) { return result[lane]; });
  if (kLeaves) write_predicate(warp, op.extra, carry_out);
}

template <class F, class T, bool kTakes, bool kLeaves>
constexpr Row carry(const char* name) {
  return {name,      carry_handler<F, T, kTakes, kLeaves>,       kWidth<T>, kWidth<T>,
          kWidth<T>, F::kSources == 3 ? kWidth<T> : Width::kNone};
}

constexpr Row kRows[] = {
    carry<Sum, u32, false, true>("add.cc.u32"),
    carry<Sum, u32, false, true>("add.cc.s32"),
    carry<Sum, u64, false, true>("add.cc.u64"),
    carry<Sum, u64, false, true>("add.cc.s64"),
    carry<Sum, u32, true, false>("addc.u32"),
    carry<Sum, u32, true, false>("addc.s32"),
    carry<Sum, u64, true, false>("addc.u64"),
    carry<Sum, u64, true, false>("addc.s64"),
    carry<Sum, u32, true, true>("addc.cc.u32"),
    carry<Sum, u32, true, true>("addc.cc.s32"),
    carry<Sum, u64, true, true>("addc.cc.u64"),
    carry<Sum, u64, true, true>("addc.cc.s64"),
    carry<Difference, u32, false, true>("sub.cc.u32"),
    carry<Difference, u32, false, true>("sub.cc.s32"),
    carry<Difference, u64, false, true>("sub.cc.u64"),
    carry<Difference, u64, false, true>("sub.cc.s64"),
    carry<Difference, u32, true, false>("subc.u32"),
    carry<Difference, u32, true, false>("subc.s32"),
    carry<Difference, u64, true, false>("subc.u64"),
    carry<Difference, u64, true, false>("subc.s64"),
    carry<Difference, u32, true, true>("subc.cc.u32"),
    carry<Difference, u32, true, true>("subc.cc.s32"),
    carry<Difference, u64, true, true>("subc.cc.u64"),
    carry<Difference, u64, true, true>("subc.cc.s64"),
    carry<LowProductSum, u32, false, true>("mad.lo.cc.u32"),
    carry<LowProductSum, u32, false, true>("mad.lo.cc.s32"),
    carry<LowProductSum, u64, false, true>("mad.lo.cc.u64"),
    carry<LowProductSum, u64, false, true>("mad.lo.cc.s64"),
    carry<LowProductSum, u32, true, false>("madc.lo.u32"),
    carry<LowProductSum, u32, true, false>("madc.lo.s32"),
    carry<LowProductSum, u64, true, false>("madc.lo.u64"),
    carry<LowProductSum, u64, true, false>("madc.lo.s64"),
    carry<LowProductSum, u32, true, true>("madc.lo.cc.u32"),
    carry<LowProductSum, u32, true, true>("madc.lo.cc.s32"),
    carry<LowProductSum, u64, true, true>("madc.lo.cc.u64"),
    carry<LowProductSum, u64, true, true>("madc.lo.cc.s64"),
    carry<HighProductSum<u32>, u32, false, true>("mad.hi.cc.u32"),
    carry<HighProductSum<s32>, u32, false, true>("mad.hi.cc.s32"),
    carry<HighProductSumU64, u64, false, true>("mad.hi.cc.u64"),
    carry<HighProductSum<s64>, u64, false, true>("mad.hi.cc.s64"),
    carry<HighProductSum<u32>, u32, true, false>("madc.hi.u32"),
    carry<HighProductSum<s32>, u32, true, false>("madc.hi.s32"),
    carry<HighProductSumU64, u64, true, false>("madc.hi.u64"),
    carry<HighProductSum<s64>, u64, true, false>("madc.hi.s64"),
    carry<HighProductSum<u32>, u32, true, true>("madc.hi.cc.u32"),
    carry<HighProductSum<s32>, u32, true, true>("madc.hi.cc.s32"),
    carry<HighProductSumU64, u64, true, true>("madc.hi.cc.u64"),
    carry<HighProductSum<s64>, u64, true, true>("madc.hi.cc.s64"),
};

}  // namespace

std::span<const Row> carry_rows() {
  return kRows;
}

}  // namespace heddle::software::HEDDLE_LANES
