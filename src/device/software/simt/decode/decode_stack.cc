// alloca, stacksave, stackrestore.

#include <bit>

#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/stack.h"

namespace heddle::software {
namespace {

// .u32 or .u64; none for another type.
Width width_of(const ptx::Instruction& instruction) {
  if (instruction.modifiers.size() != 1) return Width::kNone;
  return instruction.modifiers[0] == "u64" ? Width::k64 : instruction.modifiers[0] == "u32" ? Width::k32 : Width::kNone;
}

// The optional last operand of alloca: 8 unless it says otherwise.
uint64_t alignment_of(const ptx::Instruction& instruction) {
  if (instruction.operands.size() < 3) return 8;
  const ptx::Operand& operand = instruction.operands[2];
  return operand.kind == ptx::Operand::Kind::kLiteral ? operand.literal.bits : 0;
}

}  // namespace

void decode_alloca(FunctionCompiler& f, const ptx::Instruction& instruction) {
  constexpr uint64_t kMostAlignment = 1u << 12;
  const Width width = width_of(instruction);
  const uint64_t alignment = alignment_of(instruction);
  if (width == Width::kNone || instruction.operands.size() < 2 || instruction.operands.size() > 3) return f.refuse();
  if (!std::has_single_bit(alignment) || alignment > kMostAlignment) return f.refuse("its alignment");
  const uint32_t d = f.destination(instruction.operands[0], width);
  const uint32_t a = f.source(instruction.operands[1], width);
  if (d == Op::kNone) return f.refuse("a discarded result");
  if (f.refused()) return;
  Op& op = f.emit(allocate_on_stack);
  op.d = d, op.a = a, op.c = static_cast<uint32_t>(alignment), op.imm = width == Width::k64;
}

void decode_stack(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const bool save = instruction.opcode == "stacksave";
  const Width width = width_of(instruction);
  if (width == Width::kNone || instruction.operands.size() != 1) return f.refuse();
  const ptx::Operand& operand = instruction.operands[0];
  const uint32_t place = save ? f.destination(operand, width) : f.source(operand, width);
  if (place == Op::kNone) return f.refuse("a discarded result");
  if (f.refused()) return;
  Op& op = f.emit(save ? save_stack : restore_stack);
  (save ? op.d : op.a) = place, op.imm = width == Width::k64;
}

}  // namespace heddle::software
