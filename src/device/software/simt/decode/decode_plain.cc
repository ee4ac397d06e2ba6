// Instructions whose row says all: the operands in order, each of the row's width.

#include <algorithm>
#include <bit>

#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/video.h"

namespace heddle::software {
namespace {

bool is_any_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

// The name under which the rows know an instruction. Rounding to nearest is how rows without a rounding round; mad on
// floats is fma; .uni and the like never reach here.
std::string row_name(const ptx::Instruction& instruction) {
  bool exact = is_any_of(instruction.opcode, {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt"});
  const std::string& type = instruction.modifiers.empty() ? instruction.opcode : instruction.modifiers.back();
  bool floating = is_any_of(type, {"f32", "f64"});
  std::string name = instruction.opcode == "mad" && floating ? "fma" : instruction.opcode;
  for (const std::string& modifier : instruction.modifiers)
    if (!(exact && modifier == "rn")) name += "." + modifier;
  return name;
}

}  // namespace

void decode_plain(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const Row* row = f.row(row_name(instruction));
  if (!row) return;
  const Width sources[] = {row->a, row->b, row->c};
  auto count = static_cast<size_t>(std::count_if(sources, sources + 3, [](Width w) { return w != Width::kNone; }));
  if (instruction.operands.size() != count + 1) return f.refuse("its number of operands");
  uint32_t offsets[3] = {};
  for (size_t i = 0; i < count; ++i) offsets[i] = f.source(instruction.operands[i + 1], sources[i]);
  uint32_t d = f.destination(instruction.operands[0], row->d);
  if (f.refused()) return;
  if (d == Op::kNone) return f.refuse("a discarded result");
  Op& op = f.emit(row->handler);
  op.d = d, op.a = offsets[0], op.b = offsets[1], op.c = offsets[2];
}

// add, sub and mad in the forms that leave or take a carry.
void decode_carry(FunctionCompiler& f, const ptx::Instruction& instruction) {
  bool takes = is_any_of(instruction.opcode, {"addc", "subc", "madc"});
  size_t before = f.kernel().kernel().code.size();
  decode_plain(f, instruction);
  bool emitted = f.kernel().kernel().code.size() > before;
  if ((takes || instruction.has("cc")) && emitted) f.kernel().kernel().code.back().extra = f.carry_flags();
}

// bfi has four sources.
void decode_bfi(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const Row* row = f.row(instruction.name());
  if (!row) return;
  if (instruction.operands.size() != 5) return f.refuse("its number of operands");
  uint32_t a = f.source(instruction.operands[1], row->a), b = f.source(instruction.operands[2], row->b);
  uint32_t position = f.source(instruction.operands[3], Width::k32);
  uint32_t length = f.source(instruction.operands[4], Width::k32);
  uint32_t d = f.destination(instruction.operands[0], row->d);
  if (f.refused()) return;
  Op& op = f.emit(row->handler);
  op.d = d, op.a = a, op.b = b, op.c = position, op.extra = length;
}

// lop3.or and lop3.and d|p, a, b, c, table, q.
namespace {
void decode_lop3_predicate(FunctionCompiler& f, const ptx::Instruction& instruction) {
  using Kind = ptx::Operand::Kind;
  const auto& operands = instruction.operands;
  const Row* row = f.row(instruction.name());
  if (!row) return;
  if (operands.size() != 6 || operands[0].kind != Kind::kPair || operands[4].kind != Kind::kLiteral)
    return f.refuse("its operands");
  uint32_t sources[3];
  for (size_t i = 0; i < 3; ++i) sources[i] = f.source(operands[i + 1], Width::k32);
  uint32_t combined = f.source(operands[5], Width::kPredicate);
  uint32_t d = f.destination(operands[0].elements[0], Width::k32);
  uint32_t p = f.destination(operands[0].elements[1], Width::kPredicate);
  if (f.refused()) return;
  if (p == Op::kNone) return f.refuse("a discarded predicate");
  Op& op = f.emit(row->handler);
  op.d = d, op.target = p, op.a = sources[0], op.b = sources[1], op.c = sources[2], op.extra = combined;
  op.imm = static_cast<int64_t>(operands[4].literal.bits);
}
}  // namespace

// lop3's last operand is a table, written as a number.
void decode_lop3(FunctionCompiler& f, const ptx::Instruction& instruction) {
  if (instruction.modifiers.size() == 2) return decode_lop3_predicate(f, instruction);
  const Row* row = f.row(instruction.name());
  if (!row) return;
  if (instruction.operands.size() != 5 || instruction.operands[4].kind != ptx::Operand::Kind::kLiteral)
    return f.refuse("its operands");
  uint32_t sources[3];
  for (size_t i = 0; i < 3; ++i) sources[i] = f.source(instruction.operands[i + 1], Width::k32);
  uint32_t d = f.destination(instruction.operands[0], Width::k32);
  if (f.refused()) return;
  Op& op = f.emit(row->handler);
  op.d = d, op.a = sources[0], op.b = sources[1], op.c = sources[2];
  op.imm = static_cast<int64_t>(instruction.operands[4].literal.bits);
}

void decode_video(FunctionCompiler& f, const ptx::Instruction& instruction) {
  auto form = video_form(instruction.opcode, instruction.modifiers);
  if (!form) return f.refuse();
  size_t count = form->parts > 1 ? 3 : 2;
  if (instruction.operands.size() != count + 1) return f.refuse("its number of operands");
  uint32_t sources[3] = {Op::kNone, Op::kNone, Op::kNone};
  for (size_t i = 0; i < count; ++i) sources[i] = f.source(instruction.operands[i + 1], Width::k32);
  uint32_t d = f.destination(instruction.operands[0], Width::k32);
  if (f.refused()) return;
  if (d == Op::kNone) return f.refuse("a discarded result");
  Op& op = f.emit(video);
  op.d = d, op.a = sources[0], op.b = sources[1], op.c = sources[2];
  op.imm = std::bit_cast<int64_t>(*form);
}

}  // namespace heddle::software
