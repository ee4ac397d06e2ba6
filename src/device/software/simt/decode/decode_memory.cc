// ld, st, atom, red: the state space, the type and the vector come from the modifiers; caching and ordering hints have
// no effect here beyond telling a polling loop.

#include <algorithm>
#include <array>

#include "device/software/simt/control.h"
#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/lanes/space.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

struct MemoryForm {
  std::string space;  // "global", "const", "shared", "local", "param"; empty: generic
  std::optional<ptx::Type> type;
  uint32_t elements = 1;
  bool ordered = false;   // volatile, relaxed, acquire, release
  std::string operation;  // of atom and red
};

bool starts_with(const std::string& word, std::string_view start) {
  return word.compare(0, start.size(), start) == 0;
}

bool is_hint(const std::string& word) {
  static constexpr std::array kHints = {"weak", "cta", "cluster", "gpu", "sys", "gl", "nc",   "ca",
                                        "cg",   "cs",  "lu",      "cv",  "wb",  "wt", "noftz"};
  return std::find(kHints.begin(), kHints.end(), word) != kHints.end() || starts_with(word, "L1::") ||
         (starts_with(word, "L2::") && word != "L2::cache_hint");
}

bool is_ordering(const std::string& word) {
  static constexpr std::array kOrderings = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"};
  return std::find(kOrderings.begin(), kOrderings.end(), word) != kOrderings.end();
}

std::string space_of(const std::string& word) {
  for (const char* space : {"global", "const", "shared", "local", "param"})
    if (word == space) return word;
  if (word == "shared::cta") return "shared";
  if (word == "param::entry" || word == "param::func") return "param";
  return "";
}

// Reads the modifiers; refuses one that is not known.
std::optional<MemoryForm> memory_form(FunctionCompiler& f, const ptx::Instruction& instruction, bool atomic) {
  MemoryForm form;
  for (const std::string& word : instruction.modifiers) {
    if (is_hint(word)) continue;
    if (is_ordering(word)) {
      form.ordered = true;
    } else if (std::string space = space_of(word); !space.empty()) {
      form.space = space;
    } else if (word == "v2" || word == "v4" || word == "v8") {
      form.elements = static_cast<uint32_t>(word[1] - '0');
    } else if (auto type = ptx::parse_type(word)) {
      form.type = type;
    } else if (atomic && form.operation.empty()) {
      form.operation = word;
    } else {
      return f.refuse("modifier ." + word), std::nullopt;
    }
  }
  bool usable =
      form.type && form.type->bits >= 8 && form.type->bits <= 64 && form.type->kind != ptx::TypeKind::kPredicate;
  if (!usable) return f.refuse("its type"), std::nullopt;
  return form;
}

// The space whose row does the access. Parameters of device functions lie in the frame's local memory, constants in
// global memory; a variable that is named without a space is accessed where it lies.
std::string row_space(FunctionCompiler& f, const MemoryForm& form, const MemoryBase& base) {
  std::string space = form.space;
  if (space.empty() && base.named) {
    space = base.space == ptx::Space::kShared ? "shared" : base.space == ptx::Space::kGlobal ? "global" : "";
    if (base.flags & kFrameRelative) space = "local";
  }
  if (space == "param" && !base.launch_parameter)
    return (base.flags & kFrameRelative) || !f.function().entry ? "local" : "param";
  if (space == "param") return "fixed";
  if (space == "const") return "global";
  if ((base.flags & kFrameRelative) && space != "local") return f.refuse("a variable of another state space"), "";
  return space.empty() ? "generic" : space;
}

// Offsets of the registers of a vector, or of the one register.
std::vector<uint32_t> elements_of(FunctionCompiler& f, const ptx::Operand& operand, uint32_t count, Width width,
                                  bool is_source) {
  std::vector<uint32_t> offsets;
  if (count == 1 && operand.kind != Kind::kVector) {
    offsets.push_back(is_source ? f.source(operand, width) : f.destination(operand, width));
    return offsets;
  }
  if (operand.kind != Kind::kVector || operand.elements.size() != count) return f.refuse("its vector"), offsets;
  for (const ptx::Operand& element : operand.elements)
    offsets.push_back(is_source ? f.source(element, width) : f.destination(element, width));
  return offsets;
}

// The width of the registers: that of the first one where they are registers, else that of the type.
Width register_width(FunctionCompiler& f, const ptx::Operand& operand, ptx::Type type) {
  const std::vector<ptx::Operand> alone = {operand};
  for (const ptx::Operand& element : operand.kind == Kind::kVector ? operand.elements : alone)
    if (f.width_of(element) != Width::kNone) return f.width_of(element);
  return type.bits == 64 ? Width::k64 : Width::k32;
}

std::string load_type(ptx::Type type, bool wide) {
  std::string sign = type.is_signed() ? "s" : "u", bits = std::to_string(type.bits);
  if (wide) return sign + bits + ".wide";
  return type.bits >= 32 ? bits : sign + bits;
}

void set_elements(FunctionCompiler& f, Op& op, const std::vector<uint32_t>& elements) {
  op.count = static_cast<uint8_t>(elements.size());
  op.d = elements[0];
  if (elements.size() > 1) op.extra = f.operand_list(elements);
}

void set_base(Op& op, const MemoryBase& base, bool ordered) {
  op.a = base.a;
  op.imm = base.offset;
  op.flags = static_cast<uint8_t>(base.flags | (ordered ? kPolling : 0));
}

// An access to shared memory that goes to the same place in all blocks is located once.
void set_same_address(FunctionCompiler& f, Op& op, const std::string& space, const ptx::Operand& address) {
  if (space != "shared" || op.count != 1 || (op.flags & kPolling) || !f.is_same_in_all_blocks(address)) return;
  op.flags |= kSameAddress;
  op.b = f.allocate(kKnownAccessBytes);
}

bool inside_parameters(FunctionCompiler& f, const MemoryBase& base, uint64_t bytes) {
  uint64_t limit = f.kernel().kernel().parameter_bytes;
  return base.offset >= 0 && static_cast<uint64_t>(base.offset) <= limit &&
         bytes <= limit - static_cast<uint64_t>(base.offset);
}

}  // namespace

void decode_load(FunctionCompiler& f, const ptx::Instruction& instruction) {
  auto form = memory_form(f, instruction, false);
  if (!form) return;
  if (instruction.operands.size() != 2) return f.refuse("its number of operands");
  MemoryBase base = f.memory_base(instruction.operands[1]);
  if (f.refused()) return;
  std::string space = row_space(f, *form, base);
  Width width = register_width(f, instruction.operands[0], *form->type);
  bool wide = width == Width::k64 && form->type->bits < 64;
  if (wide && form->type->is_float()) return f.refuse("a float in a wider register");
  auto elements = elements_of(f, instruction.operands[0], form->elements, width, false);
  if (f.refused()) return;
  uint64_t bytes = form->elements * form->type->bytes();
  if (space == "fixed" && !inside_parameters(f, base, bytes)) return f.refuse("a read beyond the parameters");
  const Row* row = f.row("ld." + space + "." + load_type(*form->type, wide));
  if (!row) return;
  if (elements.size() == 1 && elements[0] == Op::kNone) return f.refuse("a discarded result");
  Op& op = f.emit(row->handler);
  set_base(op, base, form->ordered);
  set_elements(f, op, elements);
  set_same_address(f, op, space, instruction.operands[1]);
  // A device's warps all reach a load before the first has its answer. There are programs in which several warps
  // compute the same sum in the same place, and which are right for that reason.
  bool read_to_be_written = space == "global" && f.is_stored_to(instruction.operands[1]);
  if (read_to_be_written) f.emit_unguarded(end_turn).weight = Op::kWholeTurn;
}

void decode_store(FunctionCompiler& f, const ptx::Instruction& instruction) {
  auto form = memory_form(f, instruction, false);
  if (!form) return;
  if (instruction.operands.size() != 2) return f.refuse("its number of operands");
  MemoryBase base = f.memory_base(instruction.operands[0]);
  if (f.refused()) return;
  std::string space = row_space(f, *form, base);
  Width width = register_width(f, instruction.operands[1], *form->type);
  bool wide = width == Width::k64 && form->type->bits < 64;
  auto elements = elements_of(f, instruction.operands[1], form->elements, width, true);
  if (f.refused()) return;
  if (space == "fixed" || space == "param" || form->space == "const") return f.refuse("a write to read-only memory");
  const Row* row = f.row("st." + space + "." + std::to_string(form->type->bits) + (wide ? ".wide" : ""));
  if (!row) return;
  Op& op = f.emit(row->handler);
  set_base(op, base, form->ordered);
  set_elements(f, op, elements);
  set_same_address(f, op, space, instruction.operands[0]);
}

// atom d, [a], b {, c} and red [a], b.
void decode_atomic(FunctionCompiler& f, const ptx::Instruction& instruction) {
  auto form = memory_form(f, instruction, true);
  if (!form) return;
  bool returns = instruction.opcode == "atom";
  size_t sources = form->operation == "cas" ? 2 : 1;
  if (instruction.operands.size() != sources + 1 + returns) return f.refuse("its number of operands");
  const Row* row = f.row("atom." + form->operation + "." + instruction.modifiers.back());
  if (!row || form->elements != 1) return f.refuse();
  const ptx::Operand* operand = instruction.operands.data();
  uint32_t d = returns ? f.destination(*operand++, row->d) : Op::kNone;
  MemoryBase base = f.memory_base(*operand++);
  uint32_t b = f.source(*operand++, row->d);
  uint32_t c = sources == 2 ? f.source(*operand, row->d) : Op::kNone;
  if (f.refused()) return;
  std::string space = row_space(f, *form, base);
  if (f.refused()) return;
  if (space != "global" && space != "shared" && space != "generic") return f.refuse("its state space");
  Op& op = f.emit(row->handler);
  set_base(op, base, true);
  op.d = d, op.b = b, op.c = c;
  op.count = static_cast<uint8_t>(space == "global" ? At::kGlobal : space == "shared" ? At::kShared : At::kGeneric);
}

}  // namespace heddle::software
