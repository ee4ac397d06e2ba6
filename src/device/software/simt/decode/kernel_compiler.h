#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "core/units.h"
#include "device/software/simt/kernel.h"

namespace heddle::software {

// Where a variable lies: in the shared window, or at an address of global memory.
struct VariableAddress {
  ptx::Space space = ptx::Space::kGlobal;
  uint64_t value = 0;
};

// Where the variables of a function lie in the local memory of its frame: what it declares .local, and the parameters
// of device functions, its own and those of the calls it makes.
struct LocalLayout {
  std::vector<uint32_t> offsets;    // by index in ptx::Function::variables
  uint32_t bytes = 0;               // of the frame, per thread
  std::vector<LocalPlace> formals;  // results, then parameters
};

// Compiles one kernel with the functions it reaches. Made for one use; the function compilers see it.
class KernelCompiler {
 public:
  KernelCompiler(const ptx::Module& module, const SymbolResolver& resolve, const InstructionSet& instructions);
  Result<std::unique_ptr<const CompiledKernel>> run(std::string_view name);

  const InstructionSet& instructions() const { return instructions_; }
  CompiledKernel& kernel() { return *kernel_; }
  // Index in CompiledKernel::functions; none if the kernel does not reach a function of that name with a body.
  std::optional<uint32_t> function_index(std::string_view name) const;
  const ptx::Function& function(uint32_t index) const { return *functions_[index]; }
  const LocalLayout& locals(uint32_t function) const { return locals_[function]; }
  // Whether any function that the kernel reaches allocates local memory at run time.
  bool uses_stack() const { return uses_stack_; }
  // A variable of the module or, for shared ones, of a function; none if it has no address.
  std::optional<VariableAddress> address_of(const ptx::Variable& variable) const;
  std::optional<VariableAddress> address_of(std::string_view symbol) const;

 private:
  Status collect_functions(const ptx::Function& function);
  Status collect_callees(const ptx::Function& function);
  void add_callee(const ptx::Function& callee, std::vector<uint32_t>& callees);
  std::vector<const ptx::Function*> functions_with_address() const;
  void lay_out_shared();
  Status lay_out_locals();
  void lay_out_parameters();
  Status compile_functions();
  uint32_t deepest_stack(uint32_t function);

  const ptx::Module& module_;
  const SymbolResolver& resolve_;
  const InstructionSet& instructions_;
  std::unique_ptr<CompiledKernel> kernel_;
  std::vector<const ptx::Function*> functions_;
  bool uses_stack_ = false;
  std::vector<std::vector<uint32_t>> callees_;
  std::vector<LocalLayout> locals_;
  std::vector<std::optional<uint32_t>> stacks_;  // see deepest_stack
  std::vector<bool> on_path_;
  std::unordered_map<const ptx::Variable*, uint32_t> shared_;
  std::unordered_map<std::string_view, const ptx::Variable*> variables_;
  std::unordered_map<std::string_view, uint32_t> function_indices_;
};

}  // namespace heddle::software
