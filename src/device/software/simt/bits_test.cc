// Logic, shifts and bit fields, against definitions that go bit by bit.

#include "device/software/simt/testing/instruction.h"

namespace heddle::software::testing {
namespace {

template <class T>
bool bit(T value, uint32_t i) {
  return i < sizeof(T) * 8 && (static_cast<std::make_unsigned_t<T>>(value) >> i & 1);
}

// The low 8 bits of position and length count; of 64-bit fields all bits, as on devices.
template <class T>
T extract(T a, uint32_t full_position, uint32_t full_length) {
  constexpr uint32_t kTop = sizeof(T) * 8 - 1;
  uint64_t counted = sizeof(T) == 8 ? ~0ull : 255;
  uint64_t position = full_position & counted, length = full_length & counted;
  bool sign = std::is_signed_v<T> && length != 0 &&
              bit(a, static_cast<uint32_t>(std::min<uint64_t>(position + length - 1, kTop)));
  uint64_t result = 0;
  for (uint32_t i = 0; i <= kTop; ++i)
    result |= uint64_t{i < length && position + i <= kTop ? bit(a, static_cast<uint32_t>(position + i)) : sign} << i;
  return static_cast<T>(result);
}

template <class T>
T shifted_left(T a, uint32_t by) {
  return by >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << by);
}
template <class T>
T shifted_right(T a, uint32_t by) {
  return static_cast<T>(static_cast<__int128>(a) >> std::min(by, 127u));
}

TEST(Bits, ShiftsClampTheirAmount) {
  expect_instruction<uint16_t, uint16_t, uint32_t>("shl.b16 %d, %a, %b;", pairs<uint16_t, uint32_t>(),
                                                   shifted_left<uint16_t>);
  expect_instruction<uint32_t, uint32_t, uint32_t>("shl.b32 %d, %a, %b;", pairs<uint32_t, uint32_t>(),
                                                   shifted_left<uint32_t>);
  expect_instruction<uint64_t, uint64_t, uint32_t>("shl.b64 %d, %a, %b;", pairs<uint64_t, uint32_t>(),
                                                   shifted_left<uint64_t>);
  expect_instruction<uint16_t, uint16_t, uint32_t>("shr.u16 %d, %a, %b;", pairs<uint16_t, uint32_t>(),
                                                   shifted_right<uint16_t>);
  expect_instruction<int16_t, int16_t, uint32_t>("shr.s16 %d, %a, %b;", pairs<int16_t, uint32_t>(),
                                                 shifted_right<int16_t>);
  expect_instruction<uint32_t, uint32_t, uint32_t>("shr.b32 %d, %a, %b;", pairs<uint32_t, uint32_t>(),
                                                   shifted_right<uint32_t>);
  expect_instruction<int32_t, int32_t, uint32_t>("shr.s32 %d, %a, %b;", pairs<int32_t, uint32_t>(),
                                                 shifted_right<int32_t>);
  expect_instruction<uint64_t, uint64_t, uint32_t>("shr.u64 %d, %a, %b;", pairs<uint64_t, uint32_t>(),
                                                   shifted_right<uint64_t>);
  expect_instruction<int64_t, int64_t, uint32_t>("shr.s64 %d, %a, %b;", pairs<int64_t, uint32_t>(),
                                                 shifted_right<int64_t>);
}

TEST(Bits, FunnelShifts) {
  using U = uint32_t;
  auto inputs = triples<U, U, U>();
  auto joined = [](U a, U b) { return uint64_t{b} << 32 | a; };
  expect_instruction<U, U, U, U>("shf.l.wrap.b32 %d, %a, %b, %c;", inputs,
                                 [=](U a, U b, U c) { return static_cast<U>(joined(a, b) << (c & 31) >> 32); });
  expect_instruction<U, U, U, U>("shf.r.wrap.b32 %d, %a, %b, %c;", inputs,
                                 [=](U a, U b, U c) { return static_cast<U>(joined(a, b) >> (c & 31)); });
  expect_instruction<U, U, U, U>("shf.l.clamp.b32 %d, %a, %b, %c;", inputs,
                                 [=](U a, U b, U c) { return static_cast<U>(joined(a, b) << std::min(c, 32u) >> 32); });
  expect_instruction<U, U, U, U>("shf.r.clamp.b32 %d, %a, %b, %c;", inputs,
                                 [=](U a, U b, U c) { return static_cast<U>(joined(a, b) >> std::min(c, 32u)); });
}

TEST(Bits, ExtractingFields) {
  expect_instruction<uint32_t, uint32_t, uint32_t, uint32_t>(
      "bfe.u32 %d, %a, %b, %c;", triples<uint32_t, uint32_t, uint32_t>(), extract<uint32_t>);
  expect_instruction<int32_t, int32_t, uint32_t, uint32_t>("bfe.s32 %d, %a, %b, %c;",
                                                           triples<int32_t, uint32_t, uint32_t>(), extract<int32_t>);
  expect_instruction<uint64_t, uint64_t, uint32_t, uint32_t>(
      "bfe.u64 %d, %a, %b, %c;", triples<uint64_t, uint32_t, uint32_t>(), extract<uint64_t>);
  expect_instruction<int64_t, int64_t, uint32_t, uint32_t>("bfe.s64 %d, %a, %b, %c;",
                                                           triples<int64_t, uint32_t, uint32_t>(), extract<int64_t>);
}

TEST(Bits, InsertingFields) {
  // The length is the low byte of the position operand shifted down, so that both vary.
  expect_instruction<uint32_t, uint32_t, uint32_t, uint32_t>(
      "shr.u32 %j, %c, 3; bfi.b32 %d, %a, %b, %c, %j;", triples<uint32_t, uint32_t, uint32_t>(),
      [](uint32_t a, uint32_t b, uint32_t c) {
        uint32_t position = c & 255, length = c >> 3 & 255, result = b;
        for (uint32_t i = 0; i < length && position + i < 32; ++i)
          result = (result & ~(1u << (position + i))) | uint32_t{bit(a, i)} << (position + i);
        return result;
      });
  expect_instruction<uint64_t, uint64_t, uint32_t, uint32_t>(
      "bfi.b64 %d, %a, -1, %b, %c;", triples<uint64_t, uint32_t, uint32_t>(),
      [](uint64_t a, uint64_t position, uint64_t length) {
        uint64_t result = ~0ull;
        for (uint64_t i = 0; i < length && position + i < 64; ++i)
          result = (result & ~(1ull << (position + i))) | uint64_t{bit(a, static_cast<uint32_t>(i))} << (position + i);
        return result;
      });
}

TEST(Bits, CountsAndPlaces) {
  using U = uint32_t;
  expect_instruction<U, U>("popc.b32 %d, %a;", singles<U>(), [](U a) { return static_cast<U>(std::popcount(a)); });
  expect_instruction<U, uint64_t>("popc.b64 %d, %a;", singles<uint64_t>(),
                                  [](uint64_t a) { return static_cast<U>(std::popcount(a)); });
  expect_instruction<U, U>("clz.b32 %d, %a;", singles<U>(), [](U a) { return static_cast<U>(std::countl_zero(a)); });
  expect_instruction<U, uint64_t>("clz.b64 %d, %a;", singles<uint64_t>(),
                                  [](uint64_t a) { return static_cast<U>(std::countl_zero(a)); });
  expect_instruction<U, U>("bfind.u32 %d, %a;", singles<U>(),
                           [](U a) { return a ? 31u - static_cast<U>(std::countl_zero(a)) : ~0u; });
  expect_instruction<U, int32_t>("bfind.s32 %d, %a;", singles<int32_t>(), [](int32_t a) {
    auto magnitude = static_cast<U>(a < 0 ? ~a : a);
    return magnitude ? 31u - static_cast<U>(std::countl_zero(magnitude)) : ~0u;
  });
  expect_instruction<U, int64_t>("bfind.shiftamt.s64 %d, %a;", singles<int64_t>(), [](int64_t a) {
    auto magnitude = static_cast<uint64_t>(a < 0 ? ~a : a);
    return magnitude ? static_cast<U>(std::countl_zero(magnitude)) : ~0u;
  });
}

TEST(Bits, Reversal) {
  expect_instruction<uint32_t, uint32_t>("brev.b32 %d, %a;", singles<uint32_t>(), [](uint32_t a) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; ++i) result |= uint32_t{bit(a, i)} << (31 - i);
    return result;
  });
  expect_instruction<uint64_t, uint64_t>("brev.b64 %d, %a;", singles<uint64_t>(), [](uint64_t a) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < 64; ++i) result |= uint64_t{bit(a, i)} << (63 - i);
    return result;
  });
}

TEST(Bits, LogicOfTwoAndThree) {
  using U = uint32_t;
  expect_instruction<uint16_t, uint16_t, uint16_t>("and.b16 %d, %a, %b;", pairs<uint16_t, uint16_t>(),
                                                   [](uint16_t a, uint16_t b) { return static_cast<uint16_t>(a & b); });
  expect_instruction<U, U, U>("or.b32 %d, %a, %b;", pairs<U, U>(), [](U a, U b) { return a | b; });
  expect_instruction<uint64_t, uint64_t, uint64_t>("xor.b64 %d, %a, %b;", pairs<uint64_t, uint64_t>(),
                                                   [](uint64_t a, uint64_t b) { return a ^ b; });
  expect_instruction<uint16_t, uint16_t>("not.b16 %d, %a;", singles<uint16_t>(),
                                         [](uint16_t a) { return static_cast<uint16_t>(~a); });
  expect_instruction<U, U>("cnot.b32 %d, %a;", singles<U>(), [](U a) { return a == 0 ? 1u : 0u; });
  for (uint32_t table : {0x00u, 0x1Eu, 0x96u, 0xE8u, 0xFFu})
    expect_instruction<U, U, U, U>("lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", triples<U, U, U>(),
                                   [=](U a, U b, U c) {
                                     U result = 0;
                                     for (uint32_t i = 0; i < 32; ++i)
                                       result |= (table >> (bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) & 1) << i;
                                     return result;
                                   });
}

TEST(Bits, PermutationOfBytes) {
  using U = uint32_t;
  expect_instruction<U, U, U, U>("prmt.b32 %d, %a, %b, %c;", triples<U, U, U>(), [](U a, U b, U c) {
    uint64_t bytes = uint64_t{b} << 32 | a;
    U result = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      auto byte = static_cast<uint8_t>(bytes >> (8 * (c >> (4 * i) & 7)));
      if (c >> (4 * i) & 8) byte = byte & 128 ? 255 : 0;
      result |= U{byte} << (8 * i);
    }
    return result;
  });
}

TEST(Bits, PredicateLogicAndMovesOfPredicates) {
  using U = uint32_t;
  std::string reads = "setp.ne.u32 %p, %a, 0; setp.gt.u32 %q, %b, 5; ";
  std::string writes = " selp.u32 %d, 1, 0, %p;";
  expect_instruction<U, U, U>(reads + "and.pred %p, %p, %q;" + writes, pairs<U, U>(),
                              [](U a, U b) { return a != 0 && b > 5 ? 1u : 0u; });
  expect_instruction<U, U, U>(reads + "or.pred %p, %p, %q;" + writes, pairs<U, U>(),
                              [](U a, U b) { return a != 0 || b > 5 ? 1u : 0u; });
  expect_instruction<U, U, U>(reads + "xor.pred %p, %p, %q;" + writes, pairs<U, U>(),
                              [](U a, U b) { return (a != 0) != (b > 5) ? 1u : 0u; });
  expect_instruction<U, U, U>(reads + "not.pred %p, %q;" + writes, pairs<U, U>(),
                              [](U, U b) { return b > 5 ? 0u : 1u; });
  expect_instruction<U, U, U>(reads + "mov.pred %p, -1; @%q mov.pred %p, 0;" + writes, pairs<U, U>(),
                              [](U, U b) { return b > 5 ? 0u : 1u; });
}

}  // namespace
}  // namespace heddle::software::testing
