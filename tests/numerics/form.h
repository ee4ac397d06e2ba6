#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What the numerics suite runs: one kernel for each instruction and type. Standard library only: the recorder is built
// on machines with a GPU, where nothing else of heddle is.
namespace heddle::numerics {

// How far a result may be from the recorded one: |x - y| <= max(absolute, relative * |y|), in the type of the result.
// Both 0: the same value. Any NaN equals any other NaN, since PTX leaves payloads open.
struct Tolerance {
  double relative = 0, absolute = 0;
  bool exact() const { return relative == 0 && absolute == 0; }
};

// One form of an instruction. `code` uses %d as destination and %a, %b, %c as sources; %p, %q, %r are predicates (%r
// holds for odd threads), %t0 to %t3 and %w0 to %w3 spare registers of 32 and 64 bits.
struct Form {
  std::string code;
  std::string result;                // type, see type_of
  std::vector<std::string> sources;  // types; up to 3
  Tolerance tolerance;
};

// All forms that a device of compute capability 9.0 has.
std::vector<Form> all_forms();

struct Type {
  enum class Kind { kInteger, kFloat };
  Kind kind = Kind::kInteger;
  uint32_t bytes = 4;  // of an element in memory
  uint32_t register_bits = 32;
  uint32_t parts = 1;          // 2: two packed values
  uint32_t exponent_bits = 0;  // of a float, without the sign: the rest is fraction
};
// By name: u8 to s64, f16, bf16, f16x2, bf16x2, f32, f64; "at": u32 with values that make sense as a bit position.
Type type_of(const std::string& name);

inline constexpr uint32_t kThreads = 512, kBlock = 128;

// The module of a form: kernel "k" with four 64-bit parameters: where to put kThreads results, where the sources lie.
std::string module_of(const Form& form);

// kThreads values for source number `index`, packed: values at which things go wrong in all pairs, then random ones.
std::vector<uint8_t> inputs_of(const Form& form, size_t index);

// Changes when the form, its types or its inputs change: what a recording is found by.
uint64_t fingerprint_of(const Form& form);

}  // namespace heddle::numerics
