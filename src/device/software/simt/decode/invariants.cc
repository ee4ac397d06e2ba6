#include "device/software/simt/decode/invariants.h"

#include <algorithm>
#include <string_view>

#include "device/software/simt/special.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

// Registers kept through all blocks share their places with no others: more would crowd the host's cache.
constexpr uint32_t kMostRegisters = 64;

// What may run though its result is not asked for: it depends on its operands only, and cannot fault.
bool is_pure(const ptx::Instruction& instruction) {
  static constexpr std::string_view kPure[] = {"abs", "add", "and", "bfe", "bfi", "cvt", "cvta", "fma",  "lop3", "mad",
                                               "max", "min", "mov", "mul", "neg", "not", "or",   "selp", "setp", "shf",
                                               "shl", "shr", "sub", "xor", "div", "rem", "popc", "prmt"};
  bool known = std::find(std::begin(kPure), std::end(kPure), instruction.opcode) != std::end(kPure);
  return known && !instruction.has("cc");
}

// Special registers that are the same in all blocks of a launch.
bool is_constant(std::string_view name) {
  auto special = find_special(name);
  if (!special) return false;
  bool shape = *special <= Special::kNtidZ || (*special >= Special::kNctaidX && *special <= Special::kNwarpId);
  return shape || (*special >= Special::kLaneMaskEq && *special <= Special::kLaneMaskGe);
}

class Search {
 public:
  explicit Search(const ptx::Function& function) : function_(function) {
    found_.registers.resize(function.registers.size());
    found_.instructions.resize(function.code.size());
  }

  Invariants run() {
    if (!function_.entry) return std::move(found_);
    count_writes();
    // Once along the code: they run in that order, each behind those that it reads.
    uint32_t left = kMostRegisters;
    for (size_t i = 0; i < function_.code.size() && left > 0; ++i) {
      if (!is_invariant(function_.code[i])) continue;
      found_.instructions[i] = true;
      found_.registers[function_.code[i].operands[0].index] = true;
      --left;
    }
    return std::move(found_);
  }

 private:
  // Every register of a first operand counts as written, unless as part of an address: in doubt too many.
  void count_writes() {
    writes_.resize(function_.registers.size());
    for (const ptx::Instruction& instruction : function_.code)
      if (!instruction.operands.empty()) count_writes(instruction.operands[0]);
  }

  void count_writes(const ptx::Operand& operand) {
    if (operand.kind == Kind::kAddress || operand.kind == Kind::kImage) return;
    if (operand.kind == Kind::kRegister) ++writes_[operand.index];
    for (const ptx::Operand& element : operand.elements) count_writes(element);
  }

  bool is_invariant(const ptx::Operand& operand) const {
    if (operand.kind == Kind::kSpecial) return is_constant(operand.name);
    bool constant = operand.kind == Kind::kLiteral || operand.kind == Kind::kVariable || operand.kind == Kind::kSymbol;
    return constant || found_.holds(operand);
  }

  bool reads_parameter(const ptx::Instruction& instruction) const {
    if (instruction.opcode != "ld" || !instruction.has("param") || instruction.operands.size() != 2) return false;
    const ptx::Operand& address = instruction.operands[1];
    if (address.kind != Kind::kAddress || address.elements.size() != 1) return false;
    const ptx::Operand& named = address.elements[0];
    return named.kind == Kind::kVariable && named.index < function_.parameter_count;
  }

  bool is_invariant(const ptx::Instruction& instruction) const {
    const auto& operands = instruction.operands;
    if (instruction.guard || operands.size() < 2 || operands[0].kind != Kind::kRegister) return false;
    if (writes_[operands[0].index] != 1) return false;
    if (reads_parameter(instruction)) return true;
    return is_pure(instruction) && std::all_of(operands.begin() + 1, operands.end(),
                                               [&](const ptx::Operand& operand) { return is_invariant(operand); });
  }

  const ptx::Function& function_;
  Invariants found_;
  std::vector<uint32_t> writes_;  // by register: by how many instructions
};

}  // namespace

Invariants find_invariants(const ptx::Function& function) {
  return Search(function).run();
}

}  // namespace heddle::software
