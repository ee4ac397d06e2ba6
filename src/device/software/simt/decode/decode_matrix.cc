// wmma, mma and ldmatrix.

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/lanes/space.h"
#include "device/software/simt/matrix.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

std::optional<MatrixType> type_of(const std::string& word) {
  static constexpr std::pair<const char*, MatrixType> kTypes[] = {
      {"f16", MatrixType::kF16}, {"bf16", MatrixType::kBF16}, {"tf32", MatrixType::kTF32}, {"f32", MatrixType::kF32},
      {"f64", MatrixType::kF64}, {"s8", MatrixType::kS8},     {"u8", MatrixType::kU8},     {"s32", MatrixType::kS32}};
  for (const auto& [name, type] : kTypes)
    if (word == name) return type;
  return std::nullopt;
}

// "m16n8k16"
bool read_shape(const std::string& word, MatrixForm& form) {
  const char* at = word.data();
  const char* end = at + word.size();
  for (auto [letter, value] : {std::pair{'m', &form.m}, {'n', &form.n}, {'k', &form.k}}) {
    if (at == end || *at++ != letter) return false;
    auto read = std::from_chars(at, end, *value);
    if (read.ec != std::errc() || *value == 0 || *value > 32) return false;
    at = read.ptr;
  }
  return at == end;
}

// The shapes of each type of A and B.
bool is_known(const MatrixForm& form) {
  struct Known {
    bool mma;
    uint8_t bytes, m, n, k;
  };
  static constexpr Known kKnown[] = {
      {false, 2, 16, 16, 16}, {false, 2, 8, 32, 16}, {false, 2, 32, 8, 16}, {false, 1, 16, 16, 16},
      {false, 1, 8, 32, 16},  {false, 1, 32, 8, 16}, {false, 4, 16, 16, 8}, {false, 8, 8, 8, 4},
      {true, 2, 16, 8, 8},    {true, 2, 16, 8, 16},  {true, 4, 16, 8, 4},   {true, 4, 16, 8, 8},
      {true, 1, 8, 8, 16},    {true, 1, 16, 8, 16},  {true, 1, 16, 8, 32},  {true, 8, 8, 8, 4},
  };
  bool accumulators = form.c != MatrixType::kBF16 && form.c != MatrixType::kTF32 && element_bytes(form.c) > 1;
  bool integer = element_bytes(form.ab) == 1;
  bool fits = integer == (form.c == MatrixType::kS32) && integer == (form.d == MatrixType::kS32) &&
              (form.ab == MatrixType::kF64) == (form.c == MatrixType::kF64) &&
              (form.c == MatrixType::kF64) == (form.d == MatrixType::kF64);
  return accumulators && fits && form.ab != MatrixType::kF32 && form.ab != MatrixType::kS32 &&
         std::any_of(std::begin(kKnown), std::end(kKnown), [&](const Known& k) {
           return k.mma == form.documented && k.bytes == element_bytes(form.ab) && k.m == form.m && k.n == form.n &&
                  k.k == form.k;
         });
}

// Adds the registers of a matrix to `list`; `count` of them.
void add_registers(FunctionCompiler& f, const ptx::Operand& operand, MatrixType type, uint32_t count, bool written,
                   std::vector<uint32_t>& list) {
  Width width = type == MatrixType::kF64 ? Width::k64 : Width::k32;
  std::vector<ptx::Operand> registers = operand.kind == Kind::kVector ? operand.elements : std::vector{operand};
  if (registers.size() != count) return f.refuse("its number of registers");
  for (const ptx::Operand& one : registers) {
    list.push_back(written ? f.destination(one, width) : f.source(one, width));
    if (list.back() == Op::kNone) return f.refuse("a discarded result");
  }
}

// Layouts, shape and types of a product, as far as this knows them.
std::optional<MatrixForm> product_form(const ptx::Instruction& instruction, bool& saturate) {
  MatrixForm form;
  std::vector<MatrixType> types;
  std::vector<std::string> layouts;
  form.documented = instruction.opcode == "mma";
  bool shape = false;
  for (const std::string& word : instruction.modifiers) {
    if (auto type = type_of(word)) {
      types.push_back(*type);
    } else if (word == "row" || word == "col") {
      layouts.push_back(word);
    } else if (word == "satfinite") {
      saturate = true;
    } else if (word[0] == 'm' && word != "mma") {
      shape = read_shape(word, form);
    } else if (word != "mma" && word != "sync" && word != "aligned" && word != "rn") {
      return std::nullopt;
    }
  }
  // wmma on f16 names the types of d and c only.
  if (!form.documented && types.size() == 2) types = {types[0], MatrixType::kF16, MatrixType::kF16, types[1]};
  if (!shape || types.size() != 4 || layouts.size() != 2) return std::nullopt;
  if (form.documented && (layouts[0] != "row" || layouts[1] != "col")) return std::nullopt;
  form.d = types[0], form.ab = types[1], form.b = types[2], form.c = types[3];
  bool alike = form.ab == form.b || element_bytes(form.ab) + element_bytes(form.b) == 2;
  return alike && is_known(form) ? std::optional(form) : std::nullopt;
}

void decode_product(FunctionCompiler& f, const ptx::Instruction& instruction) {
  bool saturate = false;
  auto form = product_form(instruction, saturate);
  const auto& operands = instruction.operands;
  if (!form || operands.size() != 4) return f.refuse();
  std::vector<uint32_t> list;
  add_registers(f, operands[0], form->d, matrix_registers(*form, MatrixRole::kC, form->d), true, list);
  add_registers(f, operands[1], form->ab, matrix_registers(*form, MatrixRole::kA, form->ab), false, list);
  add_registers(f, operands[2], form->b, matrix_registers(*form, MatrixRole::kB, form->b), false, list);
  add_registers(f, operands[3], form->c, matrix_registers(*form, MatrixRole::kC, form->c), false, list);
  if (f.refused()) return;
  uint32_t first = f.operand_list(list);
  Op& op = f.emit_control(multiply_matrices);
  op.extra = first;
  op.imm = std::bit_cast<int64_t>(*form);
  op.flags = saturate && form->d == MatrixType::kS32 ? kSaturateMatrix : 0;
}

At space_of(const ptx::Instruction& instruction, const MemoryBase& base) {
  bool shared =
      instruction.has("shared") || instruction.has("shared::cta") || (base.named && base.space == ptx::Space::kShared);
  return shared ? At::kShared : instruction.has("global") ? At::kGlobal : At::kGeneric;
}

// wmma.load.x d, [address] {, stride} and wmma.store.d [address], d {, stride}
void decode_transfer(FunctionCompiler& f, const ptx::Instruction& instruction) {
  bool store = instruction.has("store");
  const auto& operands = instruction.operands;
  MatrixForm form;
  MatrixRole role = MatrixRole::kC;
  std::optional<MatrixType> type;
  bool shape = false, row = false, column = false;
  for (const std::string& word : instruction.modifiers) {
    if (word == "a") role = MatrixRole::kA;
    if (word == "b") role = MatrixRole::kB;
    row |= word == "row", column |= word == "col";
    if (!shape && read_shape(word, form)) shape = true;
    if (auto found = type_of(word)) type = found;
  }
  if (!shape || !type || row == column || operands.size() < 2 || operands.size() > 3) return f.refuse();
  form.ab = form.b = role == MatrixRole::kC ? MatrixType::kF16 : *type;
  MemoryBase base = f.memory_base(operands[store ? 0 : 1]);
  uint32_t stride = operands.size() == 3 ? f.source(operands[2], Width::k32) : Op::kNone;
  std::vector<uint32_t> list;
  add_registers(f, operands[store ? 1 : 0], *type, matrix_registers(form, role, *type), !store, list);
  if (f.refused()) return;
  if ((base.flags & kFrameRelative) || base.offset != static_cast<int32_t>(base.offset)) return f.refuse("its address");
  bool a = role == MatrixRole::kA, b = role == MatrixRole::kB;
  MatrixTransfer transfer{b ? form.k : form.m, a ? form.k : form.n, *type, row, static_cast<int32_t>(base.offset)};
  uint32_t first = f.operand_list(list);
  Op& op = f.emit_control(store ? store_matrix : load_matrix);
  op.a = base.a, op.b = stride, op.extra = first, op.flags = base.flags;
  op.count = static_cast<uint8_t>(list.size());
  op.target = static_cast<uint32_t>(space_of(instruction, base));
  op.imm = std::bit_cast<int64_t>(transfer);
}

}  // namespace

void decode_matrix(FunctionCompiler& f, const ptx::Instruction& instruction) {
  bool moves = instruction.opcode == "wmma" && (instruction.has("load") || instruction.has("store"));
  return moves ? decode_transfer(f, instruction) : decode_product(f, instruction);
}

// ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared}.b16 d, [address]
void decode_ldmatrix(FunctionCompiler& f, const ptx::Instruction& instruction) {
  uint32_t count = instruction.has("x4") ? 4 : instruction.has("x2") ? 2 : instruction.has("x1") ? 1 : 0;
  if (!instruction.has("m8n8") || !instruction.has("b16") || count == 0 || instruction.operands.size() != 2)
    return f.refuse();
  MemoryBase base = f.memory_base(instruction.operands[1]);
  std::vector<uint32_t> list;
  add_registers(f, instruction.operands[0], MatrixType::kTF32, count, true, list);
  if (f.refused()) return;
  if (base.flags & kFrameRelative) return f.refuse("its address");
  uint32_t first = f.operand_list(list);
  Op& op = f.emit_control(load_small_matrices);
  op.a = base.a, op.imm = base.offset, op.flags = base.flags, op.extra = first;
  op.c = instruction.has("trans") ? 1 : 0;
  op.count = static_cast<uint8_t>(count);
  op.target = static_cast<uint32_t>(space_of(instruction, base));
}

}  // namespace heddle::software
