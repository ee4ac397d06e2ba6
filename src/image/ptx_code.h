#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The instructions of a PTX function's body, as far as the flow of addresses needs them. All views point into the text.
namespace heddle::image {

struct PtxOperand {
  bool memory = false;                  // in brackets
  bool vector = false;                  // in braces or parentheses
  std::vector<std::string_view> names;  // of registers, variables, functions
  std::optional<uint64_t> number;       // a plain integer, decimal or hexadecimal
};

struct PtxInstruction {
  std::string_view name;                    // "ld", without predicate and modifiers
  std::vector<std::string_view> modifiers;  // ".global", ".u64", with their dots
  std::vector<PtxOperand> operands;

  bool has(std::string_view modifier) const;
  // The last modifier, which is the type of what is read or written; empty where there is none.
  std::string_view type() const { return modifiers.empty() ? std::string_view() : modifiers.back(); }
};

struct PtxCode {
  std::vector<PtxInstruction> instructions;
  // The parameter space that a body declares for each call of its own, under names that are told apart: one call's
  // "param0" is another than the next one's. Names of instructions point here for them.
  std::deque<std::string> arguments;
};

// Instructions in the order of the text. Directives, labels and nesting are passed over. Never fails: what makes no
// sense becomes an instruction of an unknown name. May throw std::bad_alloc.
PtxCode read_code(std::string_view body);

}  // namespace heddle::image
