// Moving and converting: mov with its packing forms, cvt, cvta; comparing: setp, set.

#include "device/software/simt/decode/decoders.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

void move(FunctionCompiler& f, const char* row_name, uint32_t d, uint32_t a, bool counts) {
  const Row* row = f.row(row_name);
  if (!row) return;
  Op& op = f.emit(row->handler);
  op.d = d, op.a = a, op.weight = counts;
}

// mov.b64 {a, b}, c: the halves, of which the last counts as the instruction. mov.b64 {a, b, c, d}, e: quarters.
void unpack(FunctionCompiler& f, const ptx::Instruction& instruction, Width width) {
  const auto& parts = instruction.operands[0].elements;
  uint32_t whole = f.source(instruction.operands[1], width);
  bool quarters = parts.size() == 4 && width == Width::k64;
  if (f.refused()) return;
  if (parts.size() != 2 && !quarters) return f.refuse("this many parts");
  for (size_t half = 0; half < 2; ++half) {
    bool last = half == 1;
    if (!quarters) {
      uint32_t d = f.destination(parts[half], Width::k32);
      const char* name = width == Width::k64 ? (half ? "mov.high.64" : "mov.low.64")
                         : half              ? "mov.high.32"
                                             : "mov.low.32";
      if (d != Op::kNone) move(f, name, d, whole, last);
      continue;
    }
    uint32_t middle = f.temporary(Width::k32);
    move(f, half ? "mov.high.64" : "mov.low.64", middle, whole, false);
    for (size_t i = 0; i < 2; ++i) {
      uint32_t d = f.destination(parts[2 * half + i], Width::k32);
      if (d != Op::kNone) move(f, i ? "mov.high.32" : "mov.low.32", d, middle, last && i == 1);
    }
  }
}

void join(FunctionCompiler& f, const char* row_name, uint32_t d, uint32_t low, uint32_t high, bool counts) {
  const Row* row = f.row(row_name);
  if (!row) return;
  Op& op = f.emit(row->handler);
  op.d = d, op.a = low, op.b = high, op.weight = counts;
}

void pack(FunctionCompiler& f, const ptx::Instruction& instruction, Width width) {
  const auto& parts = instruction.operands[1].elements;
  uint32_t d = f.destination(instruction.operands[0], width);
  uint32_t sources[4] = {};
  bool quarters = parts.size() == 4 && width == Width::k64;
  if (parts.size() != 2 && !quarters) return f.refuse("this many parts");
  for (size_t i = 0; i < parts.size(); ++i) sources[i] = f.source(parts[i], Width::k32);
  if (f.refused()) return;
  if (!quarters) return join(f, width == Width::k64 ? "mov.pack.64" : "mov.pack.32", d, sources[0], sources[1], true);
  uint32_t low = f.temporary(Width::k32), high = f.temporary(Width::k32);
  join(f, "mov.pack.32", low, sources[0], sources[1], false);
  join(f, "mov.pack.32", high, sources[2], sources[3], false);
  join(f, "mov.pack.64", d, low, high, true);
}

Width width_of_type(ptx::Type type) {
  return type.kind == ptx::TypeKind::kPredicate ? Width::kPredicate : type.bits == 64 ? Width::k64 : Width::k32;
}

bool is_integer(ptx::Type type) {
  return type.kind == ptx::TypeKind::kUnsigned || type.kind == ptx::TypeKind::kSigned;
}

}  // namespace

void decode_mov(FunctionCompiler& f, const ptx::Instruction& instruction) {
  auto type = instruction.modifiers.empty() ? std::nullopt : ptx::parse_type(instruction.modifiers.back());
  if (!type || type->bits > 64 || instruction.modifiers.size() != 1 || instruction.operands.size() != 2)
    return f.refuse();
  Width width = width_of_type(*type);
  if (instruction.operands[0].kind == Kind::kVector) return unpack(f, instruction, width);
  if (instruction.operands[1].kind == Kind::kVector) return pack(f, instruction, width);
  uint32_t d = f.destination(instruction.operands[0], width);
  if (f.refused() || d == Op::kNone) return;
  if (instruction.operands[1].kind == Kind::kSpecial) {
    if (Op* op = f.emit_special(instruction.operands[1].name, width)) op->d = d;
    return;
  }
  uint32_t a = f.source(instruction.operands[1], width);
  if (f.refused()) return;
  move(f, width == Width::kPredicate ? "mov.pred" : width == Width::k64 ? "mov.64" : "mov.32", d, a, true);
}

// cvt: the row's name has the modifiers in the order rounding, ftz, sat, types. Those that join several sources are
// plain instructions.
void decode_cvt(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& modifiers = instruction.modifiers;
  if (instruction.operands.size() > 2) return decode_plain(f, instruction);
  if (modifiers.size() < 2 || instruction.operands.size() != 2) return f.refuse();
  auto to = ptx::parse_type(modifiers[modifiers.size() - 2]);
  auto from = ptx::parse_type(modifiers.back());
  if (!to || !from) return f.refuse();
  std::string rounding;
  for (size_t i = 0; i + 2 < modifiers.size(); ++i)
    if (modifiers[i] != "ftz" && modifiers[i] != "sat") rounding += "." + modifiers[i];
  bool flushes = instruction.has("ftz") && from->is_float();
  bool saturates = instruction.has("sat") && !(is_integer(*to) && from->is_float());  // those clamp anyway
  bool widens =
      is_integer(*to) && is_integer(*from) && to->bits <= 32 && f.width_of(instruction.operands[0]) == Width::k64;
  const Row* row = f.row("cvt" + rounding + (flushes ? ".ftz" : "") + (saturates ? ".sat" : "") + "." +
                         modifiers[modifiers.size() - 2] + "." + modifiers.back() + (widens ? ".wide" : ""));
  if (!row) return;
  uint32_t a;
  if (row->a == Width::k32 && is_integer(*from) && f.width_of(instruction.operands[1]) == Width::k64) {
    const Row* low = f.row("mov.low.64");
    uint32_t wide = f.source(instruction.operands[1], Width::k64);
    a = f.temporary(Width::k32);
    Op& op = f.emit_extra(low->handler);
    op.d = a, op.a = wide;
  } else {
    a = f.source(instruction.operands[1], row->a);
  }
  uint32_t d = f.destination(instruction.operands[0], row->d);
  if (f.refused() || d == Op::kNone) return;
  Op& op = f.emit(row->handler);
  op.d = d, op.a = a;
}

// cvta.space: an address of a space to a generic one; cvta.to.space: back. Global addresses are generic ones.
void decode_cvta(FunctionCompiler& f, const ptx::Instruction& instruction) {
  uint64_t window = 0;
  if (instruction.has("shared") || instruction.has("shared::cta")) {
    window = kSharedWindow;
  } else if (instruction.has("local")) {
    window = kLocalWindow;
  } else if (instruction.has("param") || instruction.has("param::entry")) {
    window = kParameterWindow;
  } else if (!instruction.has("global") && !instruction.has("const")) {
    return f.refuse();
  }
  if (!instruction.has("u64") || instruction.operands.size() != 2) return f.refuse();
  uint32_t a = f.source(instruction.operands[1], Width::k64);
  uint32_t d = f.destination(instruction.operands[0], Width::k64);
  const Row* row = f.row(window ? "add.u64" : "mov.64");
  if (f.refused()) return;
  uint32_t b = f.constant(instruction.has("to") ? -window : window, Width::k64);
  Op& op = f.emit(row->handler);
  op.d = d, op.a = a, op.b = b;
}

namespace {

// What setp and set have in common, up to the destinations.
struct Comparison {
  const Row* row = nullptr;
  uint32_t a = 0, b = 0, c = 0;
  uint8_t flags = 0;
};

// `types` at the end of the modifiers, the last of which is the operands'.
Comparison comparison(FunctionCompiler& f, const ptx::Instruction& instruction, size_t types) {
  Comparison result;
  const auto& modifiers = instruction.modifiers;
  if (modifiers.size() < 1 + types) return f.refuse(), result;
  std::string name = "setp." + modifiers[0];
  for (size_t i = 1; i + types < modifiers.size(); ++i) {
    if (modifiers[i] == "and") {
      result.flags = kCombineAnd;
    } else if (modifiers[i] == "or") {
      result.flags = kCombineOr;
    } else if (modifiers[i] == "xor") {
      result.flags = kCombineXor;
    } else {
      name += "." + modifiers[i];
    }
  }
  const auto& operands = instruction.operands;
  if (operands.size() != (result.flags ? 4u : 3u)) return f.refuse("its number of operands"), result;
  result.row = f.row(name + "." + modifiers.back());
  if (!result.row) return result;
  result.a = f.source(operands[1], result.row->a);
  result.b = f.source(operands[2], result.row->b);
  if (!result.flags) return result;
  ptx::Operand combined = operands[3];
  if (combined.negated) result.flags |= kNegateC;
  combined.negated = false;
  result.c = f.source(combined, Width::kPredicate);
  return result;
}

}  // namespace

void decode_setp(FunctionCompiler& f, const ptx::Instruction& instruction) {
  Comparison compared = comparison(f, instruction, 1);
  if (f.refused()) return;
  const ptx::Operand& to = instruction.operands[0];
  bool pair = to.kind == Kind::kPair;
  uint32_t d = f.destination(pair ? to.elements[0] : to, Width::kPredicate);
  uint32_t opposite = pair ? f.destination(to.elements[1], Width::kPredicate) : Op::kNone;
  if (f.refused()) return;
  Op& op = f.emit(compared.row->handler);
  op.d = d, op.a = compared.a, op.b = compared.b, op.c = compared.c, op.target = opposite, op.flags = compared.flags;
  bool packed = instruction.modifiers.back().find("x2") != std::string::npos;
  if (!packed && !instruction.guard) f.let_branch_join();
}

namespace {

// What set writes where the comparison holds: all ones, or 1.0 of a float type.
std::optional<int64_t> value_of_set(const std::string& type) {
  if (type == "f32") return 0x3F800000;
  if (type == "f16" || type == "f16x2") return 0x3C00;
  if (type == "bf16" || type == "bf16x2") return 0x3F80;
  bool integer = type == "u32" || type == "s32" || type == "u16" || type == "s16";
  return integer ? std::optional<int64_t>(-1) : std::nullopt;
}

}  // namespace

// set: like setp, with a value as result; of packed sources, a packed one.
void decode_set(FunctionCompiler& f, const ptx::Instruction& instruction) {
  Comparison compared = comparison(f, instruction, 2);
  if (f.refused()) return;
  const std::string& type = instruction.modifiers[instruction.modifiers.size() - 2];
  auto value = value_of_set(type);
  bool pair = type.find("x2") != std::string::npos;
  if (!value || pair != (instruction.modifiers.back().find("x2") != std::string::npos))
    return f.refuse("a result of this type");
  const Row* widen = f.row("predicate.to.u32");
  const Row* join = f.row("mov.pack.32");
  uint32_t d = f.destination(instruction.operands[0], Width::k32);
  uint32_t holds = f.temporary(Width::kPredicate), upper = pair ? f.temporary(Width::kPredicate) : Op::kNone;
  uint32_t parts[] = {pair ? f.temporary(Width::k32) : d, pair ? f.temporary(Width::k32) : d};
  if (f.refused()) return;
  Op& compare = f.emit(compared.row->handler);
  compare.d = holds, compare.a = compared.a, compare.b = compared.b, compare.c = compared.c, compare.target = upper;
  compare.flags = compared.flags;
  compare.weight = 0;
  for (size_t i = 0; i < (pair ? 2u : 1u); ++i) {
    Op& op = f.emit(widen->handler);
    op.d = parts[i], op.a = i ? upper : holds, op.imm = *value, op.weight = !pair;
  }
  if (!pair) return;
  Op& op = f.emit(join->handler);
  op.d = d, op.a = parts[0], op.b = parts[1];
}

}  // namespace heddle::software
