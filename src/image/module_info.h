#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::image {

// Where one parameter of a kernel stands in its parameter block, in bytes.
struct Parameter {
  uint32_t offset = 0;
  uint32_t size = 0;
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

inline constexpr uint32_t kMaxThreadsPerBlock = 1024;

// What the launch of a kernel needs. The numbers are those of cudaFuncGetAttributes (compared on an H200).
struct KernelInfo {
  std::string name;  // as registered: mangled
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;                // the whole block
  uint32_t registers = 0;                      // per thread; 0: unknown, because only PTX was seen
  uint32_t static_shared = 0;                  // bytes per block, in steps of 16, without what the system reserves
  uint32_t local_bytes = 0;                    // stack per thread; from PTX only what the kernel's own body declares
  uint32_t constant_bytes = 0;                 // user constants of the whole module
  uint32_t max_threads = kMaxThreadsPerBlock;  // per block, as declared (__launch_bounds__)
};

// A variable at module level. Compiler-made ones (string literals) are among them.
struct VariableInfo {
  std::string name;
  uint64_t size = 0;  // bytes
  bool constant = false;
  bool managed = false;
  bool holds_addresses = false;  // its initial value may, of variables or functions
};

struct ModuleInfo {
  std::vector<KernelInfo> kernels;
  std::vector<VariableInfo> variables;
  uint32_t arch = 0;  // that its PTX was compiled for (75 for compute_75), or its machine code where there is no PTX
  bool allocates = false;  // declares device malloc
  bool prints = false;     // declares device printf
  bool functions = false;  // has some that are no kernels, and so addresses of code that a kernel may leave in memory

  // Null where there is none of that name.
  const KernelInfo* kernel(const std::string& name) const {
    for (const KernelInfo& candidate : kernels) {
      if (candidate.name == name) return &candidate;
    }
    return nullptr;
  }
  const VariableInfo* variable(const std::string& name) const {
    for (const VariableInfo& candidate : variables) {
      if (candidate.name == name) return &candidate;
    }
    return nullptr;
  }
};

}  // namespace heddle::image
