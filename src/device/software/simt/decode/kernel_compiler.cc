#include "device/software/simt/decode/kernel_compiler.h"

#include <algorithm>

#include "device/software/simt/decode/function_compiler.h"
#include "device/software/simt/stack.h"

namespace heddle::software {
namespace {

constexpr uint64_t kMaxSharedBytes = 1u << 20;  // far above any device's; keeps offsets in 32 bits

constexpr size_t kMaxFunctions = 4096;         // bounds the depth of deepest_stack
constexpr uint64_t kMaxLocalBytes = 1u << 19;  // per thread; 512 KiB is what devices have
constexpr uint32_t kFrameBytes = 16;           // least stack of a call, so that recursion ends

uint32_t align(uint32_t offset, uint32_t alignment) {
  return static_cast<uint32_t>(round_up(offset, alignment));
}

// The names that a function mentions: variables it uses and functions it calls.
template <class Visit>
void visit_symbols(const std::vector<ptx::Operand>& operands, Visit visit) {
  for (const ptx::Operand& operand : operands) {
    if (operand.kind == ptx::Operand::Kind::kSymbol) visit(operand.name);
    visit_symbols(operand.elements, visit);
  }
}

bool allocates(const ptx::Function& function) {
  return std::any_of(function.code.begin(), function.code.end(), [](const ptx::Instruction& instruction) {
    return instruction.opcode == "alloca" || instruction.opcode == "stacksave";
  });
}

// call (results), %rd1, (arguments), prototype: through a register.
bool calls_register(const ptx::Instruction& instruction) {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(),
                     [](const ptx::Operand& operand) { return operand.kind == ptx::Operand::Kind::kRegister; });
}

}  // namespace

std::optional<uint64_t> function_address(const ptx::Module& module, std::string_view function) {
  const ptx::Function* found = module.find_function(function);
  if (!found || !found->defined) return std::nullopt;
  return kFunctionWindow + kFunctionStep * static_cast<uint64_t>(found - module.functions.data());
}

const CompiledFunction& CompiledKernel::function_at(uint32_t pc) const {
  auto after = std::find_if(functions.begin(), functions.end(), [=](const auto& f) { return f.entry > pc; });
  return after == functions.begin() ? functions.front() : *std::prev(after);
}

std::string CompiledKernel::line_name(uint32_t pc) const {
  const uint32_t line = code[pc].line;
  const CompiledFunction& function = function_at(pc);
  const auto after = std::upper_bound(function.source_lines.begin(), function.source_lines.end(), line,
                                      [](uint32_t at, const ptx::SourceLine& source) { return at < source.ptx_line; });
  if (after == function.source_lines.begin()) return stringf("PTX line %u", line);
  const ptx::SourceLine& source = *std::prev(after);
  return stringf("PTX line %u, %s:%u", line, function.source_files[source.file].c_str(), source.line);
}

Result<std::unique_ptr<const CompiledKernel>> compile(const ptx::Module& module, std::string_view kernel,
                                                      const SymbolResolver& resolve,
                                                      const InstructionSet& instructions) {
  return KernelCompiler(module, resolve, instructions).run(kernel);
}

KernelCompiler::KernelCompiler(const ptx::Module& module, const SymbolResolver& resolve,
                               const InstructionSet& instructions)
    : module_(module), resolve_(resolve), instructions_(instructions), kernel_(std::make_unique<CompiledKernel>()) {
  for (const ptx::Variable& variable : module.variables) variables_.emplace(variable.name, &variable);
}

Result<std::unique_ptr<const CompiledKernel>> KernelCompiler::run(std::string_view name) {
  kernel_->name = name;
  kernel_->instructions = &instructions_;
  const ptx::Function* entry = module_.find_function(name);
  if (!entry || !entry->entry || !entry->defined)
    return fail(ErrorCode::kNotFound, "the module has no kernel '%s'", kernel_->name.c_str());
  kernel_->max_threads = entry->max_threads;
  HEDDLE_TRY(collect_functions(*entry));
  lay_out_shared();
  if (kernel_->dynamic_shared_offset > kMaxSharedBytes)
    return fail(ErrorCode::kLimitExceeded, "kernel %s: more than %llu bytes of shared memory", kernel_->name.c_str(),
                static_cast<unsigned long long>(kMaxSharedBytes));
  lay_out_parameters();
  HEDDLE_TRY(lay_out_locals());
  HEDDLE_TRY(compile_functions());
  stacks_.resize(functions_.size());
  on_path_.resize(functions_.size());
  kernel_->local_bytes = deepest_stack(0);
  if (uses_stack_) kernel_->local_bytes = align(kernel_->local_bytes, kStackMarkBytes) + 2 * kStackMarkBytes;
  kernel_->recursive |= uses_stack_;
  return std::move(kernel_);
}

std::optional<uint32_t> KernelCompiler::function_index(std::string_view name) const {
  auto found = function_indices_.find(name);
  if (found == function_indices_.end()) return std::nullopt;
  return found->second;
}

Status KernelCompiler::collect_functions(const ptx::Function& entry) {
  functions_ = {&entry};
  function_indices_[entry.name] = 0;
  for (size_t i = 0; i < functions_.size(); ++i) {
    const ptx::Function& function = *functions_[i];
    if (!function.error.empty())
      return fail(ErrorCode::kNotSupported, "kernel %s: function %s: %s", kernel_->name.c_str(), function.name.c_str(),
                  function.error.c_str());
    uses_stack_ |= allocates(function);
    HEDDLE_TRY(collect_callees(function));
  }
  kernel_->functions_by_number.assign(module_.functions.size(), Op::kNone);
  for (uint32_t i = 0; i < functions_.size(); ++i)
    kernel_->functions_by_number[static_cast<size_t>(functions_[i] - module_.functions.data())] = i;
  return {};
}

Status KernelCompiler::collect_callees(const ptx::Function& function) {
  std::vector<uint32_t> callees;
  for (const ptx::Instruction& instruction : function.code) {
    if (instruction.opcode != "call") continue;
    visit_symbols(instruction.operands, [&](const std::string& name) {
      const ptx::Function* callee = module_.find_function(name);
      if (callee && callee->defined) add_callee(*callee, callees);
    });
    if (calls_register(instruction))
      for (const ptx::Function* callee : functions_with_address()) add_callee(*callee, callees);
  }
  callees_.push_back(std::move(callees));
  if (functions_.size() <= kMaxFunctions) return {};
  return fail(ErrorCode::kLimitExceeded, "kernel %s calls more than %zu functions", kernel_->name.c_str(),
              kMaxFunctions);
}

void KernelCompiler::add_callee(const ptx::Function& callee, std::vector<uint32_t>& callees) {
  auto [place, added] = function_indices_.emplace(callee.name, functions_.size());
  if (added) functions_.push_back(&callee);
  if (std::find(callees.begin(), callees.end(), place->second) == callees.end()) callees.push_back(place->second);
}

// The functions that a call through a register may reach: those whose address some code or some variable holds.
std::vector<const ptx::Function*> KernelCompiler::functions_with_address() const {
  std::vector<const ptx::Function*> result;
  auto add = [&](std::string_view name) {
    const ptx::Function* function = module_.find_function(name);
    if (!function || !function->defined || function->entry) return;
    if (std::find(result.begin(), result.end(), function) == result.end()) result.push_back(function);
  };
  for (const ptx::Variable& variable : module_.variables)
    for (const ptx::SymbolReference& reference : variable.references) add(reference.symbol);
  for (const ptx::Function& function : module_.functions)
    for (const ptx::Instruction& instruction : function.code)
      if (instruction.opcode != "call") visit_symbols(instruction.operands, add);
  return result;
}

// Every shared variable that a reachable function mentions or declares gets a place; all arrays without a bound share
// the one behind them.
void KernelCompiler::lay_out_shared() {
  uint64_t offset = 0;
  uint32_t dynamic_alignment = 16;
  std::vector<const ptx::Variable*> dynamic;
  auto place = [&](const ptx::Variable& variable) {
    if (variable.space != ptx::Space::kShared || shared_.contains(&variable)) return;
    if (variable.size == 0) {
      dynamic.push_back(&variable);
      dynamic_alignment = std::max(dynamic_alignment, variable.alignment);
      shared_[&variable] = 0;
      return;
    }
    offset = round_up(offset, variable.alignment);
    shared_[&variable] = static_cast<uint32_t>(std::min(offset, kMaxSharedBytes));
    offset = std::min(offset + variable.size, 2 * kMaxSharedBytes);
  };
  for (const ptx::Function* function : functions_) {
    for (const ptx::Variable& variable : function->variables) place(variable);
    for (const ptx::Instruction& instruction : function->code)
      visit_symbols(instruction.operands, [&](const std::string& name) {
        auto found = variables_.find(name);
        if (found != variables_.end()) place(*found->second);
      });
  }
  kernel_->static_shared = static_cast<uint32_t>(offset);
  kernel_->dynamic_shared_offset = align(kernel_->static_shared, dynamic_alignment);
  for (const ptx::Variable* variable : dynamic) shared_[variable] = kernel_->dynamic_shared_offset;
}

Status KernelCompiler::lay_out_locals() {
  for (const ptx::Function* function : functions_) {
    LocalLayout layout;
    uint64_t offset = function->entry ? 0 : kFrameBytes;
    for (size_t i = 0; i < function->variables.size(); ++i) {
      const ptx::Variable& variable = function->variables[i];
      bool of_launch = function->entry && i < function->parameter_count;
      bool local = variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam;
      offset = round_up(offset, variable.alignment);
      layout.offsets.push_back(static_cast<uint32_t>(offset));
      if (local && !of_launch) offset += variable.size;
      if (offset > kMaxLocalBytes)
        return fail(ErrorCode::kLimitExceeded, "kernel %s: function %s has more than %llu bytes of local memory",
                    kernel_->name.c_str(), function->name.c_str(), static_cast<unsigned long long>(kMaxLocalBytes));
    }
    layout.bytes = static_cast<uint32_t>(round_up(offset, 16));
    for (uint32_t i = 0; i < function->result_count + function->parameter_count; ++i)
      layout.formals.push_back({layout.offsets[i], static_cast<uint32_t>(function->variables[i].size)});
    locals_.push_back(std::move(layout));
  }
  return {};
}

void KernelCompiler::lay_out_parameters() {
  const ptx::Function& entry = *functions_[0];
  uint32_t offset = 0;
  for (uint32_t i = 0; i < entry.parameter_count; ++i) {
    const ptx::Variable& parameter = entry.parameter(i);
    offset = align(offset, parameter.alignment);
    kernel_->parameters.push_back({offset, static_cast<uint32_t>(parameter.size)});
    offset += static_cast<uint32_t>(parameter.size);
  }
  kernel_->parameter_bytes = offset;
}

std::optional<VariableAddress> KernelCompiler::address_of(const ptx::Variable& variable) const {
  if (variable.space == ptx::Space::kShared) {
    auto found = shared_.find(&variable);
    if (found == shared_.end()) return std::nullopt;
    return VariableAddress{variable.space, found->second};
  }
  if (variable.space != ptx::Space::kGlobal && variable.space != ptx::Space::kConst) return std::nullopt;
  auto address = resolve_(variable.name);
  if (!address) return std::nullopt;
  return VariableAddress{variable.space, *address};
}

std::optional<VariableAddress> KernelCompiler::address_of(std::string_view symbol) const {
  auto found = variables_.find(symbol);
  if (found != variables_.end()) return address_of(*found->second);
  auto function = function_address(module_, symbol);
  return function ? std::optional(VariableAddress{ptx::Space::kGlobal, *function}) : std::nullopt;
}

Status KernelCompiler::compile_functions() {
  kernel_->functions.resize(functions_.size());
  for (uint32_t i = 0; i < functions_.size(); ++i) HEDDLE_TRY(FunctionCompiler(*this, i).compile());
  return {};
}

// The most local memory that a chain of calls from this function on can need, if none of its functions comes twice.
uint32_t KernelCompiler::deepest_stack(uint32_t function) {
  if (stacks_[function]) return *stacks_[function];
  if (on_path_[function]) {
    kernel_->recursive = true;
    return 0;
  }
  on_path_[function] = true;
  uint32_t deepest = 0;
  for (uint32_t callee : callees_[function]) deepest = std::max(deepest, deepest_stack(callee));
  on_path_[function] = false;
  stacks_[function] = deepest + kernel_->functions[function].local_bytes;
  return *stacks_[function];
}

}  // namespace heddle::software
