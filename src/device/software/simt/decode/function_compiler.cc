#include "device/software/simt/decode/function_compiler.h"

#include <algorithm>

#include "device/software/simt/control.h"
#include "device/software/simt/decode/decoders.h"
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

// Where the function stores: base register and offset of each address.
std::set<std::pair<uint32_t, uint64_t>> stores_of(const ptx::Function& function) {
  std::set<std::pair<uint32_t, uint64_t>> stores;
  for (const ptx::Instruction& instruction : function.code) {
    if (instruction.opcode != "st" || instruction.operands.empty()) continue;
    const ptx::Operand& address = instruction.operands[0];
    if (address.kind == Kind::kAddress && !address.elements.empty() && address.elements[0].kind == Kind::kRegister)
      stores.emplace(address.elements[0].index, address.literal.bits);
  }
  return stores;
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
  stores_ = stores_of(function_);
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

bool FunctionCompiler::is_stored_to(const ptx::Operand& address) const {
  return address.kind == Kind::kAddress && !address.elements.empty() && address.elements[0].kind == Kind::kRegister &&
         stores_.count({address.elements[0].index, address.literal.bits}) > 0;
}

void FunctionCompiler::begin_stack() {
  if (!kernel_.uses_stack()) return;
  if (!function_.entry) saved_stack_ = temporary(Width::k32);
  Op& op = emit_extra(function_.entry ? start_stack : enter_stack);
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
