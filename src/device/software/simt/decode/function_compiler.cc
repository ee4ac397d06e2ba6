#include "device/software/simt/decode/function_compiler.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "device/software/simt/control.h"
#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/special.h"
#include "device/software/simt/stack.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

constexpr uint32_t kMaxRegisterBytes = 16u << 20;  // of one frame of one warp

// What a device's compiler would give a thread that needs so many at once: in steps of 8, and within what there is.
uint32_t estimated_registers(uint32_t words) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(round_up(words, 8), 16, 255));
}

// Whether the first Op of an instruction counts once for each time that the instruction is reached, and so can count
// for what stands before it: not if it waits for other lanes and then runs again.
bool may_count_others(const ptx::Instruction& instruction) {
  static constexpr std::string_view kWaiting[] = {"shfl", "vote", "match",    "redux",    "elect",
                                                  "wmma", "mma",  "ldmatrix", "mbarrier", "call"};
  return std::find(std::begin(kWaiting), std::end(kWaiting), instruction.opcode) == std::end(kWaiting) &&
         !instruction.has("warp");
}

}  // namespace

FunctionCompiler::FunctionCompiler(KernelCompiler& kernel, uint32_t index)
    : kernel_(kernel),
      index_(index),
      function_(kernel.function(index)),
      out_(kernel.kernel().functions[index]),
      code_(kernel.kernel().code),
      invariants_(find_invariants(function_)),
      layout_(lay_out_registers(function_, invariants_.registers)),
      registers_(layout_.offsets),
      register_end_(layout_.bytes) {}

Status FunctionCompiler::compile() {
  if (register_end_ > kMaxRegisterBytes)
    return fail(ErrorCode::kLimitExceeded, "kernel %s: function %s has %zu registers, more than %u bytes a warp",
                kernel_.kernel().name.c_str(), function_.name.c_str(), registers_.size(), kMaxRegisterBytes);
  out_.name = function_.name;
  out_.source_lines = function_.source_lines;
  out_.source_files = function_.source_files;
  out_.entry = static_cast<uint32_t>(code_.size());
  const LocalLayout& locals = kernel_.locals(index_);
  out_.local_bytes = locals.bytes;
  out_.results.assign(locals.formals.begin(), locals.formals.begin() + function_.result_count);
  out_.parameters.assign(locals.formals.begin() + function_.result_count, locals.formals.end());
  uint32_t& registers = kernel_.kernel().registers_per_thread;
  registers = std::max(registers, estimated_registers(layout_.words_per_thread));
  find_stores();
  begin_stack();
  decode_all();
  if (refused()) return fail(ErrorCode::kNotSupported, "%s", error_.c_str());
  current_ = nullptr;
  leave_stack();
  emit_unguarded(return_from_call).weight = 0;  // for code that runs off its end
  bind_labels();
  take_constants();
  return {};
}

void FunctionCompiler::find_stores() {
  for (const ptx::Instruction& instruction : function_.code) {
    if (instruction.opcode != "st" || instruction.operands.empty()) continue;
    const ptx::Operand& address = instruction.operands[0];
    if (address.kind == Kind::kAddress && !address.elements.empty() && address.elements[0].kind == Kind::kRegister)
      stores_.emplace(address.elements[0].index, address.literal.bits);
  }
}

bool FunctionCompiler::is_stored_to(const ptx::Operand& address) const {
  return address.kind == Kind::kAddress && !address.elements.empty() && address.elements[0].kind == Kind::kRegister &&
         stores_.count({address.elements[0].index, address.literal.bits}) > 0;
}

void FunctionCompiler::begin_stack() {
  if (!kernel_.uses_stack()) return;
  if (!is_entry()) saved_stack_ = temporary(Width::k32);
  Op& op = emit_extra(is_entry() ? start_stack : enter_stack);
  op.line = function_.line;
  if (saved_stack_) op.d = *saved_stack_;
}

void FunctionCompiler::leave_stack() {
  if (!saved_stack_) return;
  Op& op = current_ ? emit(restore_stack) : emit_unguarded(restore_stack);
  op.weight = 0;
  op.a = *saved_stack_;
}

void FunctionCompiler::decode_all() {
  std::vector<bool> labelled(function_.code.size() + 1);
  for (uint32_t at : function_.labels) labelled[at] = true;
  for (size_t i = 0; i < function_.code.size() && !refused(); ++i) {
    const ptx::Instruction& instruction = function_.code[i];
    if (labelled[i] || !may_count_others(instruction)) count_prologue_apart();
    if (labelled[i]) labelled_ = code_.size();
    starts_.push_back(static_cast<uint32_t>(code_.size()));
    in_prologue_ = invariants_.instructions[i];
    size_t first = code_.size();
    decode(instruction);
    if (in_prologue_) {
      ++uncounted_;
    } else if (code_.size() > first) {
      count_prologue(first);
      if (instruction.opcode == "bra") join_branch(first);
    }
  }
  count_prologue_apart();
  starts_.push_back(static_cast<uint32_t>(code_.size()));
}

// An instruction of the prologue counts where it stands, though nothing is left to do there: with the next Op.
void FunctionCompiler::count_prologue(size_t first) {
  code_[first].weight = static_cast<uint8_t>(code_[first].weight + uncounted_);
  uncounted_ = 0;
}

void FunctionCompiler::let_branch_join() {
  if (!in_prologue_) comparison_ = code_.size() - 1;
}

// A comparison runs the branch behind it, where nothing else leads to the branch: a step less. The branch stays where
// it is, for it has the target.
void FunctionCompiler::join_branch(size_t branch) {
  if (!comparison_ || *comparison_ + 1 != branch || branch == labelled_) return;
  Op& comparison = code_[*comparison_];
  comparison.flags |= kThenBranch;
  comparison.weight = static_cast<uint8_t>(comparison.weight + code_[branch].weight);
}

// Counts them by an Op of their own, where the next one is reached from elsewhere too or may run again.
void FunctionCompiler::count_prologue_apart() {
  in_prologue_ = false;
  if (!uncounted_) return;
  emit_unguarded(no_operation);
  code_.back().weight = 0;
  count_prologue(code_.size() - 1);
}

void FunctionCompiler::decode(const ptx::Instruction& instruction) {
  current_ = &instruction;
  Decoder decoder = find_decoder(instruction.opcode);
  if (!decoder) return refuse();
  for (const ptx::Operand& operand : instruction.operands)
    if (operand.kind == Kind::kOther) return refuse("operand form");
  decoder(*this, instruction);
}

void FunctionCompiler::refuse(const std::string& why) {
  if (refused()) return;
  error_ = stringf("kernel %s: PTX line %u: '%s' is not supported%s%s", kernel_.kernel().name.c_str(), current_->line,
                   current_->name().c_str(), why.empty() ? "" : ": ", why.c_str());
}

const Row* FunctionCompiler::row(const std::string& name) {
  const Row* found = kernel_.instructions().find(name);
  if (!found) refuse();
  return found;
}

Op& FunctionCompiler::emit_unguarded(Handler handler) {
  Op& op = in_prologue_ ? kernel_.kernel().prologue.emplace_back() : code_.emplace_back();
  op.run = handler;
  op.line = current_ ? current_->line : 0;
  return op;
}

Op& FunctionCompiler::emit(Handler handler) {
  Op& op = emit_unguarded(handler);
  if (!current_->guard) return op;
  op.inner = handler;
  op.run = kernel_.instructions().guarded();
  op.guard = registers_[current_->guard->predicate];
  op.guard_negated = current_->guard->negated;
  return op;
}

Op& FunctionCompiler::emit_control(Handler handler) {
  if (!current_->guard) return emit_unguarded(handler);
  Op& skip = emit_unguarded(branch);
  skip.guard = registers_[current_->guard->predicate];
  skip.guard_negated = !current_->guard->negated;
  skip.target = static_cast<uint32_t>(code_.size()) + 1;
  Op& op = emit_unguarded(handler);
  op.weight = 0;
  return op;
}

Op& FunctionCompiler::emit_extra(Handler handler) {
  Op& op = emit_unguarded(handler);
  op.weight = 0;
  return op;
}

Width FunctionCompiler::width_of(const ptx::Operand& operand) const {
  return operand.kind == Kind::kRegister ? register_width(function_.registers[operand.index]) : Width::kNone;
}

uint32_t FunctionCompiler::room(uint32_t bytes) {
  image_.resize(round_up(image_.size(), 64));
  auto offset = register_end_ + static_cast<uint32_t>(image_.size());
  image_.resize(image_.size() + bytes);
  return offset;
}

uint32_t FunctionCompiler::temporary(Width width) {
  return room(register_bytes(width));
}

uint32_t FunctionCompiler::carry_flags() {
  if (!carry_) carry_ = room(register_bytes(Width::kPredicate));
  return *carry_;
}

uint32_t FunctionCompiler::constant(uint64_t bits, Width width) {
  if (width == Width::k32) bits = static_cast<uint32_t>(bits);
  auto [place, added] = constants_.emplace(std::pair(width, bits), 0);
  if (!added) return place->second;
  place->second = room(register_bytes(width));
  std::byte* at = image_.data() + (place->second - register_end_);
  size_t size = width == Width::k64 ? 8 : 4;
  uint32_t copies = width == Width::kPredicate ? 1 : kLanes;
  for (uint32_t i = 0; i < copies; ++i) std::memcpy(at + i * size, &bits, size);
  return place->second;
}

uint32_t FunctionCompiler::source(const ptx::Operand& operand, Width width) {
  if (operand.negated && width != Width::kPredicate) {
    refuse("'!' before what is no predicate");
    return 0;
  }
  switch (operand.kind) {
    case Kind::kRegister:
      if (width_of(operand) != width) break;
      return operand.negated ? negated(registers_[operand.index]) : registers_[operand.index];
    case Kind::kLiteral:
      return literal_value(operand.literal, width);
    case Kind::kSpecial:
      return special_value(operand.name, width);
    case Kind::kVariable:
    case Kind::kSymbol:
      return address_value(operand, width);
    default:
      break;
  }
  refuse("an operand of another kind or width than the instruction's");
  return 0;
}

uint32_t FunctionCompiler::destination(const ptx::Operand& operand, Width width) {
  if (operand.kind == Kind::kDiscard) return Op::kNone;
  if (operand.kind == Kind::kRegister && width_of(operand) == width) return registers_[operand.index];
  refuse("a destination of another width than the instruction's");
  return 0;
}

uint32_t FunctionCompiler::negated(uint32_t predicate) {
  uint32_t result = temporary(Width::kPredicate);
  if (const Row* inversion = row("not.pred")) {
    Op& op = emit_extra(inversion->handler);
    op.d = result, op.a = predicate;
  }
  return result;
}

uint32_t FunctionCompiler::literal_value(const ptx::Literal& literal, Width width) {
  using LiteralKind = ptx::Literal::Kind;
  if (width == Width::k32 && literal.kind == LiteralKind::kFloat64)
    return constant(std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(literal.bits))), width);
  if (width == Width::k64 && literal.kind == LiteralKind::kFloat32)
    return constant(std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(literal.bits))}), width);
  if (width == Width::kPredicate) return constant(literal.bits ? kAllLanes : 0, width);
  return constant(literal.bits, width);
}

Op* FunctionCompiler::emit_special(const std::string& name, Width width) {
  auto special = find_special(name);
  if (!special || width == Width::kPredicate) {
    refuse("special register or undeclared register " + name);
    return nullptr;
  }
  bool thread = *special <= Special::kTidZ;
  bool lane = *special == Special::kLaneId || (*special >= Special::kLaneMaskEq && *special <= Special::kLaneMaskGe);
  const Row* reader = row(thread                ? "special.thread"
                          : lane                ? "special.lane"
                          : width == Width::k64 ? "special.uniform.64"
                                                : "special.uniform.32");
  if (!reader) return nullptr;
  if (reader->d != width) refuse("special register " + name + " has 32 bits");
  Op& op = emit(reader->handler);
  op.count = static_cast<uint8_t>(*special);
  return &op;
}

uint32_t FunctionCompiler::special_value(const std::string& name, Width width) {
  Op* op = emit_special(name, width);
  if (!op) return 0;
  op->weight = 0;
  return op->d = temporary(width);
}

// The address of a variable as a value, for mov, cvta and arithmetic.
uint32_t FunctionCompiler::address_value(const ptx::Operand& operand, Width width) {
  if (operand.kind == Kind::kSymbol && operand.name == "WARP_SZ") return constant(kLanes, width);
  ptx::Operand address;
  address.kind = Kind::kAddress;
  address.elements.push_back(operand);
  MemoryBase base = memory_base(address);
  if (refused()) return 0;
  if (base.launch_parameter) return constant(static_cast<uint64_t>(base.offset), width);
  if (!(base.flags & kFrameRelative)) return constant(base.address, width);
  const Row* reader = row(width == Width::k64 ? "local.address.64" : "local.address.32");
  if (!reader) return 0;
  uint32_t result = temporary(width);
  Op& op = emit_extra(reader->handler);
  op.d = result;
  op.imm = base.offset;
  return result;
}

MemoryBase FunctionCompiler::memory_base(const ptx::Operand& operand) {
  MemoryBase base;
  if (operand.kind != Kind::kAddress) {
    refuse("expected an address in brackets");
    return base;
  }
  base.offset = static_cast<int64_t>(operand.literal.bits);
  if (operand.elements.empty()) {
    base.a = constant(0, Width::k64);
    base.flags = kAddress64;
    return base;
  }
  const ptx::Operand& named = operand.elements[0];
  if (named.kind == Kind::kRegister) {
    Width width = width_of(named);
    if (width != Width::k32 && width != Width::k64) refuse("an address of this width");
    base.a = registers_[named.index];
    base.flags = width == Width::k64 ? kAddress64 : 0;
    return base;
  }
  base.named = true;
  std::optional<VariableAddress> address;
  if (named.kind == Kind::kVariable) {
    const ptx::Variable& variable = function_.variables[named.index];
    base.space = variable.space;
    base.launch_parameter = is_entry() && named.index < function_.parameter_count;
    if (base.launch_parameter) {
      base.offset += kernel_.kernel().parameters[named.index].offset;
      return base;
    }
    if (variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam) {
      base.offset += local_offset(named.index);
      base.flags = kFrameRelative;
      return base;
    }
    address = kernel_.address_of(variable);
  } else if (named.kind == Kind::kSymbol) {
    address = kernel_.address_of(named.name);
  }
  if (!address) {
    refuse("the address of '" + named.name + "'");
    return base;
  }
  base.space = address->space;
  base.address = address->value;
  base.a = constant(address->value, Width::k64);
  base.flags = kAddress64;
  return base;
}

bool FunctionCompiler::is_same_in_all_blocks(const ptx::Operand& address) const {
  if (!is_entry() || address.kind != Kind::kAddress || address.elements.size() != 1) return false;
  const ptx::Operand& named = address.elements[0];
  return named.kind == Kind::kVariable || named.kind == Kind::kSymbol || invariants_.holds(named);
}

uint32_t FunctionCompiler::operand_list(const std::vector<uint32_t>& offsets) {
  std::vector<uint32_t>& all = kernel_.kernel().operands;
  auto first = static_cast<uint32_t>(all.size());
  all.insert(all.end(), offsets.begin(), offsets.end());
  return first;
}

void FunctionCompiler::bind_to_label(Op& op, uint32_t label) {
  branches_.emplace_back(static_cast<uint32_t>(&op - code_.data()), label);
}

uint32_t FunctionCompiler::add_table(const std::vector<uint32_t>& labels) {
  auto table = static_cast<uint32_t>(kernel_.kernel().tables.size());
  kernel_.kernel().tables.emplace_back(labels.size());
  tables_.emplace_back(table, labels);
  return table;
}

void FunctionCompiler::bind_labels() {
  auto place = [&](uint32_t label) { return starts_[function_.labels[label]]; };
  for (auto [op, label] : branches_) code_[op].target = place(label);
  for (const auto& [table, labels] : tables_)
    for (size_t i = 0; i < labels.size(); ++i) kernel_.kernel().tables[table][i] = place(labels[i]);
}

void FunctionCompiler::take_constants() {
  out_.constants_offset = register_end_;
  out_.register_bytes = register_end_ + static_cast<uint32_t>(round_up(image_.size(), 64));
  out_.constants = std::move(image_);
}

}  // namespace heddle::software
