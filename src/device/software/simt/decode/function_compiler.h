#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/software/simt/decode/invariants.h"
#include "device/software/simt/decode/kernel_compiler.h"
#include "device/software/simt/decode/register_layout.h"
#include "device/software/simt/row.h"

namespace heddle::software {

// A memory operand, resolved: where an access is based, as Op has it.
struct MemoryBase {
  ptx::Space space = ptx::Space::kGlobal;  // of the variable it names, if it names one
  bool named = false;
  bool launch_parameter = false;  // a parameter of the kernel; offset is its place in the parameter buffer
  uint8_t flags = 0;              // kAddress64, kFrameRelative
  uint32_t a = 0;                 // register of the base
  uint64_t address = 0;           // what it holds, if the operand names a variable of the module
  int64_t offset = 0;
};

// Turns the instructions of one function into Ops. Decoders (decoders.h) use the public part: they ask for operands and
// emit Ops. The first refusal sticks; what a decoder does after it has no effect.
class FunctionCompiler {
 public:
  FunctionCompiler(KernelCompiler& kernel, uint32_t index);
  Status compile();

  KernelCompiler& kernel() { return kernel_; }
  const ptx::Function& function() const { return function_; }

  // Refuses the current instruction. The text says why, where that is not plain from the instruction.
  void refuse(const std::string& why = "");
  bool refused() const { return !error_.empty(); }

  // The row of that name; without one the current instruction is refused and null returned.
  const Row* row(const std::string& name);

  // Emits an Op for the lanes for which the guard of the current instruction holds.
  Op& emit(Handler handler);
  // The same for instructions that wait or move lanes elsewhere: lanes without guard jump over them.
  Op& emit_control(Handler handler);
  // Emits an Op ahead of the instruction's own: it does not count, and runs for all lanes.
  Op& emit_extra(Handler handler);
  // What stands before a return: gives back what the function allocated on the stack.
  void leave_stack();
  // Emits an Op without regard to the guard.
  Op& emit_unguarded(Handler handler);

  // Offsets of operands in the registers. A source may be a register, a literal, a special register, the address of a
  // variable or a negated predicate; what is not a register is put into one.
  uint32_t source(const ptx::Operand& operand, Width width);
  // An Op that reads a special register; null if there is none of that name and width.
  Op* emit_special(const std::string& name, Width width);
  // Op::kNone for a discarded operand.
  uint32_t destination(const ptx::Operand& operand, Width width);
  uint32_t constant(uint64_t bits, Width width);
  uint32_t temporary(Width width);
  uint32_t carry_flags();  // a predicate of the function
  // Width of a register operand; kNone if it is none.
  Width width_of(const ptx::Operand& operand) const;

  // Bytes of a frame that are zero at first and stay as they are left.
  uint32_t allocate(uint32_t bytes);

  MemoryBase memory_base(const ptx::Operand& operand);
  // Whether an address is the same in all blocks of a launch, thread by thread.
  bool is_same_in_all_blocks(const ptx::Operand& address) const;
  // Whether some instruction of the function stores to this address: the same register and offset.
  bool is_stored_to(const ptx::Operand& address) const;
  // The index of the first of these offsets in CompiledKernel::operands.
  uint32_t operand_list(const std::vector<uint32_t>& offsets);
  uint32_t local_offset(uint32_t variable) const { return kernel_.locals(index_).offsets[variable]; }

  // Lets a branch that follows the comparison emitted last run as part of it.
  void let_branch_join();

  // Branches are bound to Ops when the whole function is decoded.
  void bind_to_label(Op& op, uint32_t label);
  uint32_t add_table(const std::vector<uint32_t>& labels);

 private:
  void decode_all();
  void decode(const ptx::Instruction& instruction);
  void count_prologue(size_t first);
  void join_branch(size_t branch);
  void count_prologue_apart();
  void begin_stack();
  void bind_labels();
  void take_constants();
  uint32_t address_value(const ptx::Operand& operand, Width width);
  uint32_t literal_value(const ptx::Literal& literal, Width width);
  uint32_t special_value(const std::string& name, Width width);
  uint32_t negated(uint32_t predicate);

  KernelCompiler& kernel_;
  const uint32_t index_;
  const ptx::Function& function_;
  CompiledFunction& out_;
  std::vector<Op>& code_;
  const ptx::Instruction* current_ = nullptr;
  const Invariants invariants_;
  bool in_prologue_ = false;          // where the current instruction's Ops go
  size_t labelled_ = 0;               // the last Op so far that is reached from elsewhere
  std::optional<size_t> comparison_;  // the last Op so far that a branch may join
  uint32_t uncounted_ = 0;            // instructions that went there, for which no Op of the code counts yet
  const RegisterLayout layout_;
  const std::vector<uint32_t>& registers_;  // offset of each PTX register
  const uint32_t register_end_;
  std::vector<std::byte> image_;  // constants and temporaries, behind the registers
  std::map<std::pair<Width, uint64_t>, uint32_t> constants_;
  std::optional<uint32_t> carry_;
  std::set<std::pair<uint32_t, uint64_t>> stores_;                  // register, offset
  std::optional<uint32_t> saved_stack_;                             // where the stack was when the function was called
  std::vector<uint32_t> starts_;                                    // Op of each PTX instruction
  std::vector<std::pair<uint32_t, uint32_t>> branches_;             // Op, label
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> tables_;  // table, labels
  std::string error_;
};

}  // namespace heddle::software
