#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "device/software/simt/testing/machine.h"

// One instruction, run over many operands on every instruction set, against what the host computes.
namespace heddle::software::testing {

// The register class and memory type of a C++ type in PTX.
template <class T>
struct PtxType;
#define HEDDLE_PTX_TYPE(TYPE, REGISTER, MEMORY)        \
  template <>                                          \
  struct PtxType<TYPE> {                               \
    static constexpr const char* kRegister = REGISTER; \
    static constexpr const char* kMemory = MEMORY;     \
  }
HEDDLE_PTX_TYPE(uint8_t, "b16", "u8");
HEDDLE_PTX_TYPE(int8_t, "b16", "s8");
HEDDLE_PTX_TYPE(uint16_t, "b16", "u16");
HEDDLE_PTX_TYPE(int16_t, "b16", "s16");
HEDDLE_PTX_TYPE(uint32_t, "b32", "u32");
HEDDLE_PTX_TYPE(int32_t, "b32", "s32");
HEDDLE_PTX_TYPE(uint64_t, "b64", "u64");
HEDDLE_PTX_TYPE(int64_t, "b64", "s64");
HEDDLE_PTX_TYPE(float, "f32", "f32");
HEDDLE_PTX_TYPE(double, "f64", "f64");
#undef HEDDLE_PTX_TYPE

// Values at which things go wrong, and random ones.
template <class T>
std::vector<T> interesting_values(size_t random_count) {
  std::vector<T> values;
  std::mt19937_64 random(42);
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    for (T v : {T(0),
                T(1),
                T(1.5),
                T(2.5),
                T(0.5),
                T(3),
                T(127.5),
                T(65535.75),
                T(2147483647.0),
                T(2147483648.0),
                T(4294967295.0),
                T(9223372036854775807.0),
                T(18446744073709551615.0),
                T(1e30),
                Limits::max(),
                Limits::min(),
                Limits::denorm_min(),
                Limits::min() / 2,
                Limits::infinity(),
                Limits::quiet_NaN()}) {
      values.push_back(v);
      values.push_back(-v);
    }
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    for (size_t i = 0; i < random_count; ++i)
      values.push_back(i % 2 ? std::bit_cast<T>(static_cast<Bits>(random()))
                             : static_cast<T>(static_cast<int32_t>(random())) / T(65536));
  } else {
    for (int64_t v : {0ll, 1ll, 2ll, 3ll, 7ll, 31ll, 32ll, 33ll, 63ll, 64ll, 255ll, 256ll, -1ll, -2ll, -7ll})
      values.push_back(static_cast<T>(v));
    for (T v : {Limits::max(), Limits::min(), static_cast<T>(Limits::max() - 1), static_cast<T>(Limits::max() / 2)})
      values.push_back(v);
    for (size_t i = 0; i < random_count; ++i) values.push_back(static_cast<T>(random() >> (random() % 64)));
  }
  return values;
}

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return a != a && b != b;
    return a == b && std::signbit(a) == std::signbit(b);
  } else {
    return a == b;
  }
}

// Runs "<code>", in which %d is the destination and %a, %b, %c the sources, for each tuple; compares with `reference`.
// `declarations` may add registers.
template <class D, class... S, class Reference>
void expect_instruction(const std::string& code, const std::vector<std::tuple<S...>>& inputs, Reference reference,
                        const std::string& declarations = "") {
  auto count = static_cast<uint32_t>(inputs.size());
  constexpr size_t kSources = sizeof...(S);
  const char* names[] = {"%a", "%b", "%c"};
  const char* registers[] = {PtxType<S>::kRegister...};
  const char* memory[] = {PtxType<S>::kMemory...};
  const size_t sizes[] = {sizeof(S)...};
  std::string ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out, .param .u32 n";
  for (size_t i = 0; i < kSources; ++i) ptx += ", .param .u64 in" + std::to_string(i);
  ptx += ") {\n.reg .pred %done, %p, %q; .reg .b32 %i, %j, %n; .reg .b64 %at, %by;\n";
  ptx += declarations + ".reg ." + std::string(PtxType<D>::kRegister) + " %d;\n";
  for (size_t i = 0; i < kSources; ++i) ptx += ".reg ." + std::string(registers[i]) + " " + names[i] + ";\n";
  ptx +=
      "mov.u32 %i, %ctaid.x; mov.u32 %j, %ntid.x; mov.u32 %n, %tid.x; mad.lo.u32 %i, %i, %j, %n;\n"
      "ld.param.u32 %n, [n]; setp.ge.u32 %done, %i, %n; @%done ret;\n";
  for (size_t i = 0; i < kSources; ++i)
    ptx += "ld.param.u64 %at, [in" + std::to_string(i) + "]; mul.wide.u32 %by, %i, " + std::to_string(sizes[i]) +
           "; add.u64 %at, %at, %by; ld.global." + memory[i] + " " + names[i] + ", [%at];\n";
  ptx += code + "\nld.param.u64 %at, [out]; mul.wide.u32 %by, %i, " + std::to_string(sizeof(D)) +
         "; add.u64 %at, %at, %by; st.global." + PtxType<D>::kMemory + " [%at], %d; ret; }\n";
  for (const InstructionSet* set : runnable_instruction_sets()) {
    Machine machine(*set);
    machine.load(ptx);
    uint64_t out = machine.allocate(sizeof(D) * count);
    auto columns = [&]<size_t... I>(std::index_sequence<I...>) {
      auto column = [&]<size_t K>() {
        std::vector<std::tuple_element_t<K, std::tuple<S...>>> values;
        for (const auto& input : inputs) values.push_back(std::get<K>(input));
        return machine.put(values);
      };
      return std::array<uint64_t, kSources>{column.template operator()<I>()...};
    }
    (std::make_index_sequence<kSources>());
    auto outcome = std::apply(
        [&](auto... in) {
          return machine.run("k", {.grid = {(count + 127) / 128, 1, 1}, .block = {128, 1, 1}}, out, count, in...);
        },
        columns);
    ASSERT_EQ(outcome.progress, Block::Progress::kFinished) << code << outcome.refusal << outcome.fault.text;
    auto result = machine.get<D>(out, count);
    for (size_t i = 0; i < count; ++i) {
      D expected = std::apply(reference, inputs[i]);
      ASSERT_TRUE(same(result[i], expected))
          << code << " on " << set->name() << ", input " << ::testing::PrintToString(inputs[i]) << ": got "
          << ::testing::PrintToString(result[i]) << ", expected " << ::testing::PrintToString(expected);
    }
  }
}

template <class A>
std::vector<std::tuple<A>> singles() {
  std::vector<std::tuple<A>> result;
  for (A a : interesting_values<A>(200)) result.emplace_back(a);
  return result;
}
template <class A, class B>
std::vector<std::tuple<A, B>> pairs() {
  std::vector<std::tuple<A, B>> result;
  for (A a : interesting_values<A>(10))
    for (B b : interesting_values<B>(10)) result.emplace_back(a, b);
  return result;
}
template <class A, class B, class C>
std::vector<std::tuple<A, B, C>> triples() {
  std::vector<std::tuple<A, B, C>> result;
  auto as = interesting_values<A>(10);
  auto bs = interesting_values<B>(10);
  auto cs = interesting_values<C>(10);
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i)
    result.emplace_back(as[random() % as.size()], bs[random() % bs.size()], cs[random() % cs.size()]);
  return result;
}

}  // namespace heddle::software::testing
