#pragma once

#include "llvm/IR/PassManager.h"

namespace heddle::compiler {

// First phase, before any optimisation: brings GPU operations into a form in which their memory is visible.
//  - kernel stubs stay calls; functions that do GPU work are inlined into their callers where that ends;
//  - cudaMalloc(&p, n) becomes {p, error} = heddle_malloc(n), so that device pointers are values and not memory;
//  - the runtime's functions are known not to throw.
// What it makes is right on its own: nothing depends on the second phase having run.
struct PreparePass : llvm::PassInfoMixin<PreparePass> {
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
};

} // namespace heddle::compiler
