#pragma once

// The GPU tasks of one function (CASE, section III-A, Alg. 1): launches that share memory, and everything else that is
// done with that memory.

#include "pass/Trace.h"
#include "llvm/IR/Function.h"
#include <vector>

namespace heddle::compiler {

// One launch. Its anchor is the push of the configuration: it is there on both sides of nvcc's check.
struct Launch {
  llvm::CallBase *Push = nullptr;
  llvm::CallBase *Stub = nullptr;
  llvm::Function *Kernel = nullptr;
  Traced Memory;

  std::string kernelName() const;
};

struct Task {
  std::vector<const Launch *> Launches;
  Allocations Roots;
  llvm::SmallSetVector<llvm::CallBase *, 16> Operations; // all that must happen between begin and end
};

// What a function does on the GPU.
struct GpuWork {
  std::vector<Launch> Launches;
  std::vector<Task> Tasks;
};

// Finds the function's launches and merges those that share an allocation, by union-find: the order does not matter.
// Launches whose memory is not known at all are in no task.
GpuWork findTasks(llvm::Function &F);

} // namespace heddle::compiler
