#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/software/ptx/ast.h"
#include "device/software/ptx/declaration.h"
#include "device/software/simt/instruction_set.h"
#include "device/software/simt/op.h"

namespace heddle::software {

using ptx::SymbolResolver;

struct CheckedCode;

// A parameter of a kernel, where it lies in the parameter buffer of a launch.
struct Parameter {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// Where an argument or a result lies in the local memory of a frame.
struct LocalPlace {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct CallSite {
  uint32_t function = 0;                       // index into CompiledKernel::functions; of direct calls
  std::vector<LocalPlace> arguments, results;  // the caller's
};

// A function as it stands in the code of a kernel. Functions are compiled once a kernel; each call has its own frame of
// registers and local memory.
struct CompiledFunction {
  std::string name;
  uint32_t entry = 0;           // first Op
  uint32_t register_bytes = 0;  // of a frame
  uint32_t local_bytes = 0;     // of a frame, per thread
  std::vector<LocalPlace> parameters, results;
  std::vector<ptx::SourceLine> source_lines;  // as the PTX has them
  std::vector<std::string> source_files;
  // What a new frame holds: the constants of the code, from `constants_offset` to the end of the registers.
  uint32_t constants_offset = 0;
  std::vector<std::byte> constants;
};

// A kernel, ready to run; immutable, shared by all blocks of all its launches.
struct CompiledKernel {
  std::string name;
  std::vector<Op> code;
  std::vector<uint32_t> operands;             // vectors of registers, see Op::extra
  std::vector<CallSite> calls;                // see Op::target
  std::vector<std::vector<uint32_t>> tables;  // of brx.idx
  std::vector<CompiledFunction> functions;    // 0 is the kernel itself
  // Which of `functions` the address of a module's function means, by its number in the module (function_address);
  // Op::kNone for those that the kernel does not reach.
  std::vector<uint32_t> functions_by_number;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared = 0;          // bytes; dynamic shared memory begins at `dynamic_shared_offset`
  uint32_t dynamic_shared_offset = 0;  // static_shared, aligned as the kernel's extern array asks
  uint32_t local_bytes = 0;            // per thread, for the deepest chain of calls without recursion
  bool recursive = false;              // needs LaunchShape::stack_bytes beyond that
  uint32_t registers_per_thread = 0;   // 32-bit registers alive at once: an estimate of what a compiler would use
  uint32_t max_threads = 0;            // of a block, as the kernel declares; 0: no such limit
  const InstructionSet* instructions = nullptr;
  // Of kernels that are checked (check/checked_kernel.h), null otherwise. Shared with copies, immutable.
  std::shared_ptr<const CheckedCode> checked;
  std::vector<Op>
      prologue;  // what is the same in all blocks of a launch: run once for a warp, ahead of its first block

  const CompiledFunction& function_at(uint32_t pc) const;
  // "PTX line 12", and where the PTX says so "PTX line 12, vecadd.cu:7": where the Op came from.
  std::string line_name(uint32_t pc) const;
};

// The address that a function of the module has as a value: in a table of functions, as the target of a call. The same
// for all kernels of the module. None if the module does not define it.
std::optional<uint64_t> function_address(const ptx::Module& module, std::string_view function);

// Compiles a kernel of a module, with the device functions that it can reach. `resolve` gives the addresses of .global
// and .const variables. Errors name the kernel, the PTX line and the instruction: what is not supported is refused
// here, before anything runs.
Result<std::unique_ptr<const CompiledKernel>> compile(const ptx::Module& module, std::string_view kernel,
                                                      const SymbolResolver& resolve,
                                                      const InstructionSet& instructions = best_instruction_set());

}  // namespace heddle::software
