// Branches, exits, calls, and what has no effect on results.

#include "device/software/simt/control.h"
#include "device/software/simt/decode/decoders.h"
#include "device/software/simt/native.h"

namespace heddle::software {
namespace {

using Kind = ptx::Operand::Kind;

// Where the caller has what it passes or receives.
std::vector<LocalPlace> places(FunctionCompiler& f, const std::vector<ptx::Operand>& passed) {
  std::vector<LocalPlace> result;
  for (const ptx::Operand& operand : passed) {
    if (operand.kind != Kind::kVariable) return f.refuse("an argument that is no variable"), result;
    result.push_back(
        {f.local_offset(operand.index), static_cast<uint32_t>(f.function().variables[operand.index].size)});
  }
  return result;
}

// Whether what is passed has the sizes of variables `first` and on of the callee.
bool match(FunctionCompiler& f, const std::vector<LocalPlace>& passed, uint32_t callee, uint32_t first,
           uint32_t count) {
  const std::vector<LocalPlace>& formals = f.kernel().locals(callee).formals;
  if (passed.size() != count) return f.refuse("a call with another number of arguments or results"), false;
  for (uint32_t i = 0; i < count; ++i)
    if (passed[i].bytes != formals[first + i].bytes)
      return f.refuse("an argument that does not match its parameter"), false;
  return true;
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
  const bool returns = instruction.opcode == "ret";
  if (returns) f.leave_stack();
  f.emit_control(returns ? return_from_call : exit_lanes);
}

void decode_trap(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit_control(trap);
}

// call (results), name, (arguments), with the lists left out where they are empty. Instead of a name a register with
// the address of a function; behind the arguments then stands the prototype, which says no more than they do.
void decode_call(FunctionCompiler& f, const ptx::Instruction& instruction) {
  std::vector<ptx::Operand> results, arguments;
  const ptx::Operand* target = nullptr;
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind == Kind::kList) {
      (target ? arguments : results) = operand.elements;
    } else if (!target) {
      target = &operand;
    }
  }
  bool prototype = !instruction.operands.empty() && instruction.operands.back().kind == Kind::kSymbol;
  bool indirect = target && target->kind == Kind::kRegister && prototype;
  if (!target || (!indirect && target->kind != Kind::kSymbol)) return f.refuse("its target");
  CallSite site;
  uint32_t callee = indirect ? Op::kNone : f.kernel().function_index(target->name).value_or(Op::kNone);
  if (callee == Op::kNone && !indirect) {
    const NativeFunction* native = find_native(target->name);
    if (!native) return f.refuse("a call of '" + target->name + "', which the module does not define");
    return call_native(f, *native, arguments, results);
  }
  site.results = places(f, results);
  site.arguments = places(f, arguments);
  uint32_t address = indirect ? f.source(*target, Width::k64) : Op::kNone;
  if (!indirect) {
    const ptx::Function& function = f.kernel().function(callee);
    if (function.entry) return f.refuse("a call of a kernel");
    site.function = callee;
    bool fits = match(f, site.results, callee, 0, function.result_count) &&
                match(f, site.arguments, callee, function.result_count, function.parameter_count);
    if (!fits) return;
  }
  if (f.refused()) return;
  auto& calls = f.kernel().kernel().calls;
  Op& op = f.emit_control(indirect ? call_indirect : call);
  op.target = static_cast<uint32_t>(calls.size());
  op.a = address;
  calls.push_back(std::move(site));
}

// All of memory is fenced, which is more than any form asks for.
void decode_fence(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit(fence);
}

void decode_nanosleep(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit(nanosleep);
}

// Hints: prefetch, pmevent. And griddepcontrol: a launch begins once those before it in its stream have ended, so that
// nothing is left to wait for.
void decode_ignored(FunctionCompiler& f, const ptx::Instruction&) {
  f.emit(no_operation);
}

}  // namespace heddle::software
