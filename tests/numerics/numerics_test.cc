// Runs every form on the software device and compares with what an H200 computed; where nothing was recorded, with the
// plainest of the host's instruction sets.

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "device/software/simt/testing/machine.h"
#include "form.h"
#include "recording.h"

namespace heddle::numerics {
namespace {

using software::Block;
using software::InstructionSet;
using software::Machine;

[[maybe_unused]] std::string unpacked(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string packed{std::istreambuf_iterator<char>(file), {}};
  std::string bytes(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  size_t size = ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
  return ZSTD_isError(size) ? "" : bytes;
}

const Recording& recording() {
#ifdef HEDDLE_NUMERICS_RECORDING
  static const Recording read = parse_recording(unpacked(HEDDLE_NUMERICS_RECORDING)).value_or(Recording{});
#else
  static const Recording read;
#endif
  return read;
}

// The value of a float's bits.
double value_of(uint64_t bits, uint32_t width, uint32_t exponent_bits) {
  uint32_t fraction_bits = width - 1 - exponent_bits;
  uint64_t fraction = bits & ((1ull << fraction_bits) - 1), all = (1ull << exponent_bits) - 1;
  uint64_t exponent = bits >> fraction_bits & all;
  double sign = bits >> (width - 1) ? -1.0 : 1.0;
  if (exponent == all) return fraction ? std::nan("") : sign * INFINITY;
  auto bias = static_cast<int>(all / 2), scale = static_cast<int>(fraction_bits);
  auto significand = static_cast<double>(exponent ? fraction | 1ull << fraction_bits : fraction);
  return sign * std::ldexp(significand, (exponent ? static_cast<int>(exponent) : 1) - bias - scale);
}

bool agrees(uint64_t ours, uint64_t recorded, uint32_t width, const Type& type, Tolerance tolerance) {
  if (ours == recorded) return true;
  if (type.kind == Type::Kind::kInteger) return false;
  double x = value_of(ours, width, type.exponent_bits), y = value_of(recorded, width, type.exponent_bits);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (tolerance.exact() || std::isinf(x) || std::isinf(y)) return false;
  return std::fabs(x - y) <= std::max(tolerance.absolute, tolerance.relative * std::fabs(y));
}

uint64_t element(const std::vector<uint8_t>& values, uint32_t thread, uint32_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, values.data() + size_t{thread} * bytes, bytes);
  return value;
}

// "a 0x..., b 0x...: got 0x..., recorded 0x..." for the first thread that differs, and how many do. Empty if none does.
std::string difference(const Form& form, const std::vector<uint8_t>& ours, const std::vector<uint8_t>& recorded) {
  Type type = type_of(form.result);
  uint32_t width = type.bytes * 8 / type.parts, wrong = 0;
  std::string first;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    uint64_t x = element(ours, thread, type.bytes), y = element(recorded, thread, type.bytes);
    bool good = true;
    for (uint32_t part = 0; part < type.parts; ++part) {
      uint64_t mask = ~0ull >> (64 - width);
      good &= agrees(x >> (part * width) & mask, y >> (part * width) & mask, width, type, form.tolerance);
    }
    if (good || wrong++ > 0) continue;
    for (size_t i = 0; i < form.sources.size(); ++i)
      first +=
          stringf("%c 0x%llx, ", static_cast<char>('a' + i),
                  static_cast<unsigned long long>(element(inputs_of(form, i), thread, type_of(form.sources[i]).bytes)));
    first += stringf("thread %u: got 0x%llx, recorded 0x%llx", thread, static_cast<unsigned long long>(x),
                     static_cast<unsigned long long>(y));
  }
  return wrong ? stringf("%u of %u differ; %s", wrong, kThreads, first.c_str()) : "";
}

class Numerics : public testing::TestWithParam<const InstructionSet*> {
 protected:
  // What the software device computes; a failure of the test if it does not run.
  static std::vector<uint8_t> compute(const Form& form, const InstructionSet& set) {
    Machine machine(set);
    machine.load(module_of(form));
    size_t bytes = size_t{kThreads} * type_of(form.result).bytes;
    uint64_t result = machine.allocate(bytes), sources[3] = {};
    for (size_t i = 0; i < form.sources.size(); ++i) sources[i] = machine.put(inputs_of(form, i));
    Machine::Launch launch{.grid = {kThreads / kBlock, 1, 1}, .block = {kBlock, 1, 1}};
    auto outcome = machine.run("k", launch, result, sources[0], sources[1], sources[2]);
    if (outcome.progress == Block::Progress::kFinished) return machine.get<uint8_t>(result, bytes);
    ADD_FAILURE() << form.code << ": " << outcome.refusal << outcome.fault.text;
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Numerics, testing::ValuesIn(software::runnable_instruction_sets()),
                         [](const auto& set) { return std::string(set.param->name()); });

#ifdef HEDDLE_NUMERICS_RECORDING
TEST(NumericsRecording, HasEveryForm) {
  ASSERT_FALSE(recording().results.empty()) << "no recording in " << HEDDLE_NUMERICS_RECORDING;
  for (const Form& form : all_forms())
    EXPECT_TRUE(recording().results.contains(fingerprint_of(form)))
        << form.code << " was not recorded; see tests/numerics/README.md";
}
#endif

TEST_P(Numerics, EveryFormComputesWhatTheGpuComputed) {
  for (const Form& form : all_forms()) {
    std::vector<uint8_t> ours = compute(form, *GetParam());
    auto recorded = recording().results.find(fingerprint_of(form));
    std::vector<uint8_t> expected = recorded != recording().results.end()
                                        ? recorded->second
                                        : compute(form, *software::runnable_instruction_sets().front());
    if (ours.empty() || expected.empty()) continue;  // said already
    EXPECT_EQ(difference(form, ours, expected), "") << form.code;
  }
}

}  // namespace
}  // namespace heddle::numerics
