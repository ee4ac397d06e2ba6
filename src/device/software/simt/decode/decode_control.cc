// Branches, exits, calls, and what has no effect on results.

#include "device/software/simt/control.h"
#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/native.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

// Pairs what is passed at a call with where the callee has it: variable `first` of the callee and those behind it.
std::vector<LocalCopy> copies(FunctionCompiler& f, const std::vector<ptx::Operand>& passed, uint32_t callee,
                              uint32_t first, uint32_t count) {
  std::vector<LocalCopy> result;
  const ptx::Function& function = f.kernel().function(callee);
  if (passed.size() != count) return f.refuse("a call with another number of arguments or results"), result;
  for (uint32_t i = 0; i < count; ++i) {
    const ptx::Variable& formal = function.variables[first + i];
    if (passed[i].kind != Kind::kVariable || f.function().variables[passed[i].index].size != formal.size)
      return f.refuse("an argument that does not match its parameter"), result;
    result.push_back({f.local_offset(passed[i].index), f.kernel().locals(callee).offsets[first + i],
                      static_cast<uint32_t>(formal.size)});
  }
  return result;
}

// A function that heddle provides: arguments and results stay where the caller has them.
void call_native(FunctionCompiler& f, const NativeFunction& native, const std::vector<ptx::Operand>& arguments,
                 const std::vector<ptx::Operand>& results) {
  std::vector<uint32_t> offsets;
  for (const auto* list : {&arguments, &results})
    for (const ptx::Operand& operand : *list) {
      if (operand.kind != Kind::kVariable) return f.refuse("its arguments");
      offsets.push_back(f.local_offset(operand.index));
    }
  if (arguments.size() != native.arguments || results.size() > 1) return f.refuse("its number of arguments");
  if (results.empty()) offsets.push_back(Op::kNone);
  Op& op = f.emit_control(native.handler);
  op.extra = f.operand_list(offsets);
}

}  // namespace

void decode_branch(FunctionCompiler& f, const ptx::Instruction& instruction) {
  if (instruction.operands.size() != 1 || instruction.operands[0].kind != Kind::kLabel) return f.refuse();
  Op& op = f.emit(branch);
  op.run = branch;  // looks at its guard itself
  f.bind_to_label(op, instruction.operands[0].index);
}

void decode_branch_table(FunctionCompiler& f, const ptx::Instruction& instruction) {
  const auto& operands = instruction.operands;
  if (!instruction.has("idx") || operands.size() != 2 || operands[1].kind != Kind::kTable) return f.refuse();
  uint32_t index = f.source(operands[0], Width::k32);
  if (f.refused()) return;
  Op& op = f.emit_control(branch_by_index);
  op.a = index;
  op.target = f.add_table(f.function().branch_tables[operands[1].index]);
}

void decode_exit(FunctionCompiler& f, const ptx::Instruction& instruction) {
  f.emit_control(instruction.opcode == "ret" ? return_from_call : exit_lanes);
}

void decode_trap(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit_control(trap);
}

// call (results), name, (arguments), with the lists left out where they are empty.
void decode_call(FunctionCompiler& f, const ptx::Instruction& instruction) {
  std::vector<ptx::Operand> results, arguments;
  const ptx::Operand* name = nullptr;
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind == Kind::kList) {
      (name ? arguments : results) = operand.elements;
    } else if (!name) {
      name = &operand;
    }
  }
  if (!name || name->kind != Kind::kSymbol) return f.refuse("an indirect call");
  auto callee = f.kernel().function_index(name->name);
  if (!callee) {
    const NativeFunction* native = find_native(name->name);
    if (!native) return f.refuse("a call of '" + name->name + "', which the module does not define");
    return call_native(f, *native, arguments, results);
  }
  const ptx::Function& function = f.kernel().function(*callee);
  if (function.entry) return f.refuse("a call of a kernel");
  CallSite site;
  site.function = *callee;
  site.results = copies(f, results, *callee, 0, function.result_count);
  site.arguments = copies(f, arguments, *callee, function.result_count, function.parameter_count);
  if (f.refused()) return;
  auto& calls = f.kernel().kernel().calls;
  f.emit_control(call).target = static_cast<uint32_t>(calls.size());
  calls.push_back(std::move(site));
}

void decode_fence(FunctionCompiler& f, const ptx::Instruction& instruction) {
  for (const char* word : {"proxy", "mbarrier_init"})
    if (instruction.has(word)) return f.refuse();
  f.emit(fence);
}

void decode_nanosleep(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit(nanosleep);
}

// Hints: prefetch, pmevent.
void decode_ignored(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit(no_operation);
}

}  // namespace heddle::software
