#include "image/ptx_program.h"

namespace heddle::image {

PtxProgram::PtxProgram(std::span<const PtxDeclarations> units) {
  for (const PtxDeclarations& unit : units) {
    for (const PtxVariable& variable : unit.variables) variables_[variable.name] = &variable;
    for (const PtxFunction& function : unit.functions) functions_[function.name].declared = &function;
    allocates_ |= unit.allocates;
  }
}

PtxProgram::Function* PtxProgram::find(std::string_view name) {
  const auto found = functions_.find(name);
  if (found == functions_.end()) return nullptr;
  Function& function = found->second;
  if (read_.insert(&function).second) {
    function.code = read_code(function.declared->body);
    for (const PtxInstruction& instruction : function.code.instructions) {
      for (const PtxOperand& operand : instruction.operands) {
        for (const std::string_view operand_name : operand.names) ++function.occurrences[operand_name];
      }
    }
    for (const PtxVariable& variable : function.declared->memory) function.own.insert(variable.name);
  }
  return &function;
}

const PtxVariable* PtxProgram::variable(std::string_view name) const {
  const auto found = variables_.find(name);
  return found == variables_.end() ? nullptr : found->second;
}

}  // namespace heddle::image
