#include "form.h"

#include <cstring>
#include <map>

namespace heddle::numerics {
namespace {

using Kind = Type::Kind;

const std::map<std::string, Type>& types() {
  static const std::map<std::string, Type> all = {
      {"u8", {Kind::kInteger, 1, 16}},         {"s8", {Kind::kInteger, 1, 16}},
      {"u16", {Kind::kInteger, 2, 16}},        {"s16", {Kind::kInteger, 2, 16}},
      {"u32", {Kind::kInteger, 4, 32}},        {"s32", {Kind::kInteger, 4, 32}},
      {"u64", {Kind::kInteger, 8, 64}},        {"s64", {Kind::kInteger, 8, 64}},
      {"at", {Kind::kInteger, 4, 32}},         {"f16", {Kind::kFloat, 2, 16, 1, 5}},
      {"bf16", {Kind::kFloat, 2, 16, 1, 8}},   {"f16x2", {Kind::kFloat, 4, 32, 2, 5}},
      {"bf16x2", {Kind::kFloat, 4, 32, 2, 8}}, {"f32", {Kind::kFloat, 4, 32, 1, 8}},
      {"f64", {Kind::kFloat, 8, 64, 1, 11}},
  };
  return all;
}

// splitmix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

uint64_t hash(uint64_t seed, const void* data, size_t bytes) {
  auto at = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) seed = (seed ^ at[i]) * 0x100000001B3ull;
  return seed;
}

uint64_t low_bits(uint32_t count) {
  return count >= 64 ? ~0ull : (1ull << count) - 1;
}

// One part's bits at which integer arithmetic changes its mind.
std::vector<uint64_t> integer_edges(uint32_t bits) {
  uint64_t top = 1ull << (bits - 1), ones = low_bits(bits);
  return {0,
          1,
          2,
          3,
          7,
          ones,
          ones - 1,
          ones - 6,
          top,
          top - 1,
          top + 1,
          ones / 3,
          31 & ones,
          32 & ones,
          63 & ones,
          64 & ones,
          100 & ones,
          top >> 1,
          (ones >> (bits / 2)),
          (ones >> (bits / 2)) + 1};
}

std::vector<uint64_t> position_edges() {
  return {0,  1,  2,  7,  8,   15,  16,  17,  31,         32,         33,  47,
          63, 64, 65, 96, 127, 128, 255, 256, 0xFFFFFFFF, 0x80000000, 300, 40};
}

// Zeros, units, the ends of the normal and subnormal numbers, infinities, NaN, halves that round to even, integers.
std::vector<uint64_t> float_edges(const Type& type) {
  uint32_t bits = type.bytes * 8 / type.parts, fraction = bits - 1 - type.exponent_bits;
  uint64_t sign = 1ull << (bits - 1), unit = 1ull << fraction, bias = low_bits(type.exponent_bits - 1);
  uint64_t one = bias * unit, infinity = low_bits(type.exponent_bits) * unit;
  return {0,
          sign,
          one,
          one | sign,
          infinity,
          infinity | sign,
          infinity + unit / 2,
          infinity - 1,
          (infinity - 1) | sign,
          unit,
          unit - 1,
          1,
          1 | sign,
          (unit - 1) | sign,
          one + unit / 2,
          (one + unit + unit / 4) | sign,
          one - unit,
          one + 1,
          one - 1,
          one + 3 * unit,
          unit | sign,
          one + 5 * unit + unit / 4,
          (one - unit) | sign,
          unit + 1};
}

std::vector<uint64_t> edges_of(const std::string& name, const Type& type) {
  if (name == "at") return position_edges();
  return type.kind == Kind::kFloat ? float_edges(type) : integer_edges(type.bytes * 8);
}

// A third of the floats are any bits at all, the rest lies within a few powers of two of 1, so that sums cancel.
uint64_t random_part(const std::string& name, const Type& type, Random& random) {
  uint64_t value = random.next(), choice = random.next();
  if (name == "at") return value % (choice % 4 ? 70 : 300);
  uint32_t bits = type.bytes * 8 / type.parts;
  if (type.kind == Kind::kInteger) return (value & low_bits(bits)) >> (choice % 3 ? 0 : choice / 3 % bits);
  if (choice % 3 == 0) return value & low_bits(bits);
  uint32_t fraction = bits - 1 - type.exponent_bits;
  uint64_t exponent = low_bits(type.exponent_bits - 1) - 4 + choice / 3 % 8;
  return (value & (low_bits(fraction) | 1ull << (bits - 1))) | exponent << fraction;
}

// The value of one part for a thread: edges in all pairs first, then a mixture.
uint64_t part_of(const std::string& name, const Type& type, size_t index, size_t sources, uint32_t thread,
                 Random& random) {
  std::vector<uint64_t> edges = edges_of(name, type);
  constexpr uint32_t kSide = 20;
  uint64_t chosen = random_part(name, type, random);
  if (sources == 1) return thread < edges.size() ? edges[thread] : chosen;
  if (sources == 2 && thread < kSide * kSide) return edges[index == 0 ? thread / kSide : thread % kSide];
  uint64_t dice = random.next();
  return dice % 2 ? edges[dice / 2 % edges.size()] : chosen;
}

}  // namespace

Type type_of(const std::string& name) {
  return types().at(name);
}

std::string module_of(const Form& form) {
  const char* names[] = {"%a", "%b", "%c"};
  const char* parameters[] = {"pa", "pb", "pc"};
  auto bits = [](uint32_t count) { return ".b" + std::to_string(count); };
  Type result = type_of(form.result);
  std::string ptx =
      ".version 8.4\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {\n"
      ".reg .pred %p, %q, %r; .reg .b32 %i, %j, %t<4>; .reg .b64 %at, %by, %w<4>; .reg .b16 %h<4>;\n";
  ptx += ".reg " + bits(result.register_bits) + " %d;\n";
  for (size_t i = 0; i < form.sources.size(); ++i)
    ptx += ".reg " + bits(type_of(form.sources[i]).register_bits) + " " + names[i] + ";\n";
  ptx += "mov.u32 %i, %ctaid.x; mov.u32 %j, %tid.x; mad.lo.u32 %i, %i, " + std::to_string(kBlock) +
         ", %j;\nand.b32 %j, %i, 1; setp.ne.u32 %r, %j, 0;\n";
  for (size_t i = 0; i < form.sources.size(); ++i) {
    Type type = type_of(form.sources[i]);
    std::string memory = type.bytes == 1 ? (form.sources[i] == "s8" ? ".s8" : ".u8") : bits(type.bytes * 8);
    ptx += std::string("ld.param.u64 %at, [") + parameters[i] + "]; mul.wide.u32 %by, %i, " +
           std::to_string(type.bytes) + "; add.u64 %at, %at, %by; ld.global" + memory + " " + names[i] + ", [%at];\n";
  }
  ptx += form.code + "\nld.param.u64 %at, [pd]; mul.wide.u32 %by, %i, " + std::to_string(result.bytes) +
         "; add.u64 %at, %at, %by; st.global" + bits(result.bytes * 8) + " [%at], %d; ret;\n}\n";
  return ptx;
}

std::vector<uint8_t> inputs_of(const Form& form, size_t index) {
  const std::string& name = form.sources[index];
  Type type = type_of(name);
  Random random(index + 1);
  uint32_t bits = type.bytes * 8 / type.parts;
  std::vector<uint8_t> values(size_t{kThreads} * type.bytes);
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    uint64_t value = part_of(name, type, index, form.sources.size(), thread, random);
    if (type.parts == 2) {  // the other half runs through the edges the other way round
      uint32_t mirrored = kThreads - 1 - thread;
      value |= part_of(name, type, index, form.sources.size(), mirrored, random) << bits;
    }
    std::memcpy(values.data() + size_t{thread} * type.bytes, &value, type.bytes);
  }
  return values;
}

uint64_t fingerprint_of(const Form& form) {
  std::string ptx = module_of(form);
  uint64_t result = hash(0xCBF29CE484222325ull, ptx.data(), ptx.size());
  for (size_t i = 0; i < form.sources.size(); ++i) {
    std::vector<uint8_t> values = inputs_of(form, i);
    result = hash(result, values.data(), values.size());
  }
  return result;
}

}  // namespace heddle::numerics
