// Static shared memory is what needs work here. A kernel uses what it declares itself, what module-level variables it
// names, and both of every function that it names, at any depth; each variable counts once.

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "image/describe.h"
#include "image/no_throw.h"
#include "image/ptx_cursor.h"
#include "image/ptx_declarations.h"

namespace heddle::image {
namespace {

// The driver reports a kernel's static shared memory in these steps (on an H200, 5 bytes are 16).
constexpr uint64_t kSharedStep = 16;

// Places variables one after another, as ptxas does.
class Layout {
 public:
  void add(const PtxVariable& variable) {
    const uint64_t mask = variable.alignment - 1;
    if (__builtin_add_overflow(end_, mask, &end_) || __builtin_add_overflow(end_ & ~mask, variable.bytes, &end_)) {
      end_ = std::numeric_limits<uint64_t>::max() / 2;
    }
  }

  // Bytes in all, rounded up to `step`; an error past 32 bits, which no device has.
  Result<uint32_t> bytes(uint64_t step, const char* what) const {
    if (end_ > std::numeric_limits<uint32_t>::max() - step) {
      return fail(ErrorCode::kLimitExceeded, "PTX declares %llu bytes of %s", static_cast<unsigned long long>(end_),
                  what);
    }
    return static_cast<uint32_t>((end_ + step - 1) / step * step);
  }

 private:
  uint64_t end_ = 0;
};

// Finds the shared variables that a kernel reaches.
class SharedMemory {
 public:
  explicit SharedMemory(std::span<const PtxDeclarations> units) {
    for (const PtxDeclarations& unit : units) {
      for (const PtxVariable& variable : unit.variables) add(variable);
      for (const PtxFunction& function : unit.functions) add(function);
    }
  }

  Result<uint32_t> bytes_of(const PtxFunction& kernel) {
    Layout layout;
    std::unordered_set<const void*> seen{&kernel};
    std::vector<const PtxFunction*> pending{&kernel};
    while (!pending.empty()) {
      const PtxFunction& function = *pending.back();
      pending.pop_back();
      for (const PtxVariable& variable : function.memory) {
        if (variable.space == StateSpace::kShared) layout.add(variable);
      }
      for (const Symbol& symbol : names_in(function)) {
        if (symbol.variable && seen.insert(symbol.variable).second) layout.add(*symbol.variable);
        if (symbol.function && seen.insert(symbol.function).second) pending.push_back(symbol.function);
      }
    }
    return layout.bytes(kSharedStep, "shared memory for one kernel");
  }

 private:
  struct Symbol {
    const PtxVariable* variable = nullptr;
    const PtxFunction* function = nullptr;
  };

  void add(const PtxVariable& variable) {
    if (variable.space != StateSpace::kShared) return;
    symbols_[variable.name] = {&variable, nullptr};
    reachable_ = true;
  }

  void add(const PtxFunction& function) {
    if (function.entry) return;
    symbols_[function.name] = {nullptr, &function};
    for (const PtxVariable& variable : function.memory) reachable_ |= variable.space == StateSpace::kShared;
  }

  // Reading the code for names is slow, and most programs have no shared variable but in the kernels themselves.
  const std::vector<Symbol>& names_in(const PtxFunction& function) {
    const auto [found, fresh] = names_.try_emplace(&function);
    if (!fresh || !reachable_) return found->second;
    PtxCursor cursor(function.body);
    for (std::string_view token = cursor.next(); !token.empty(); token = cursor.next()) {
      const auto symbol = symbols_.find(token);
      if (symbol != symbols_.end()) found->second.push_back(symbol->second);
    }
    return found->second;
  }

  std::unordered_map<std::string_view, Symbol> symbols_;
  std::unordered_map<const PtxFunction*, std::vector<Symbol>> names_;
  bool reachable_ = false;  // some shared variable is used other than by the kernel that declares it
};

Result<KernelInfo> describe_kernel(const PtxFunction& function, SharedMemory& shared, uint32_t constant_bytes) {
  const auto static_shared = shared.bytes_of(function);
  if (!static_shared) return tl::unexpected(static_shared.error());
  Layout stack;
  for (const PtxVariable& variable : function.memory) {
    if (variable.space == StateSpace::kLocal) stack.add(variable);
  }
  const auto local_bytes = stack.bytes(1, "local memory");
  if (!local_bytes) return tl::unexpected(local_bytes.error());

  KernelInfo kernel;
  kernel.name = function.name;
  kernel.parameters = function.parameters;
  kernel.parameter_bytes = function.parameter_bytes;
  kernel.static_shared = *static_shared;
  kernel.local_bytes = *local_bytes;
  kernel.constant_bytes = constant_bytes;
  kernel.max_threads = function.max_threads;
  return kernel;
}

Result<ModuleInfo> describe_declarations(std::span<const PtxDeclarations> units) {
  ModuleInfo module;
  Layout constants;
  for (const PtxDeclarations& unit : units) {
    for (const PtxVariable& variable : unit.variables) {
      const bool constant = variable.space == StateSpace::kConstant;
      if (constant) constants.add(variable);
      if (!constant && variable.space != StateSpace::kGlobal) continue;
      module.variables.push_back(
          {std::string(variable.name), variable.bytes, constant, variable.managed, variable.holds_addresses});
    }
  }
  const auto constant_bytes = constants.bytes(1, "constants");
  if (!constant_bytes) return tl::unexpected(constant_bytes.error());

  for (const PtxDeclarations& unit : units) {
    module.allocates |= unit.allocates;
    module.prints |= unit.prints;
  }
  SharedMemory shared(units);
  for (const PtxDeclarations& unit : units) {
    for (const PtxFunction& function : unit.functions) {
      module.functions |= !function.entry;
      if (!function.entry) continue;
      auto kernel = describe_kernel(function, shared, *constant_bytes);
      if (!kernel) return tl::unexpected(std::move(kernel).error());
      module.kernels.push_back(std::move(*kernel));
    }
  }
  return module;
}

}  // namespace

Result<ModuleInfo> describe_ptx_units(std::span<const std::string_view> units) {
  return no_throw([&]() -> Result<ModuleInfo> {
    std::vector<PtxDeclarations> parsed;
    for (std::string_view unit : units) {
      auto declarations = parse_declarations(unit);
      if (!declarations) return tl::unexpected(std::move(declarations).error());
      parsed.push_back(std::move(*declarations));
    }
    return describe_declarations(parsed);
  });
}

Result<ModuleInfo> describe_ptx(std::string_view ptx) {
  return describe_ptx_units({&ptx, 1});
}

}  // namespace heddle::image
