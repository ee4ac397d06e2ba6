#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "device/device.h"
#include "device/software/memory.h"
#include "device/software/ptx/ast.h"
#include "device/software/simt/kernel.h"
#include "image/effects.h"
#include "image/module_info.h"

namespace heddle::software {

inline constexpr uint32_t kThreadRegisterStep = 8;  // the hardware deals registers out per thread in eights

class Program;

// A kernel that has been compiled for the interpreter.
struct ProgramKernel : device::Kernel {
  std::unique_ptr<const CompiledKernel> code;
  std::unique_ptr<const CompiledKernel> checked;  // made when it is launched first in a context that checks
  // 32-bit registers per thread: as machine code in the same fat binary says, else the estimate that comes with `code`,
  // rounded up to kThreadRegisterStep.
  uint32_t registers = 0;
  bool registers_estimated = false;
  bool allocates = false;  // its module uses device malloc
  // What its code may do with memory, and where its parameters lie; null: that is not known, or was not asked for.
  const image::KernelEffects* effects = nullptr;
  const Program* program = nullptr;
  std::vector<image::Parameter> layout;
};

// A module: the PTX of one fat binary, or of several that were compiled separately; its variables in device memory, its
// kernels compiled at first use. Used by one thread at a time.
class Program : public device::Module {
 public:
  // Chooses the PTX that a device of that compute capability (90 for 9.0) would run, links it where there are several
  // fat binaries one behind the other, and places the variables.
  static Result<std::unique_ptr<Program>> load(std::span<const std::byte> fatbin, uint32_t capability,
                                               DeviceMemory& memory);

  // Has the code of kernels that are looked up from now on read for what it may do with memory.
  void read_effects(std::span<const std::byte> fatbin, uint32_t capability);

  // kNotFound, or kNotSupported with kernel, PTX line and instruction.
  Result<ProgramKernel*> kernel(std::string_view name);
  Result<device::Variable> variable(std::string_view name) const;
  // Calls visit(name, variable).
  template <class Visit>
  void each_variable(Visit visit) const {
    for (const auto& [name, variable] : variables_) visit(std::string_view(name), variable);
  }

 private:
  Program() = default;
  Status place_variables(DeviceMemory& memory);
  void write_initial_values();
  std::optional<uint64_t> address_of(std::string_view name) const;
  const image::KernelEffects* effects_of(std::string_view kernel) const;
  const image::KernelInfo* assembled(const CompiledKernel& code) const;

  ptx::Module ptx_;
  image::ModuleInfo described_;  // empty where the images could not be described
  std::unordered_map<std::string, device::Variable> variables_;
  std::unordered_map<std::string, Error> refused_variables_;  // whose initial value heddle cannot make
  std::unordered_map<std::string, std::unique_ptr<ProgramKernel>> kernels_;
  std::vector<image::KernelEffects> effects_;
};

}  // namespace heddle::software
