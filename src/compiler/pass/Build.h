#pragma once

#include "llvm/IR/PassManager.h"

namespace heddle::compiler {

// Second phase, after inlining and simplification: builds each function's tasks and puts in their probes, ends and
// early frees; says of each launch what was bound, what was not, and why (-Rpass=heddle, -Rpass-missed=heddle).
struct BuildPass : llvm::PassInfoMixin<BuildPass> {
  static bool isRequired() { return true; }
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &MAM);
};

} // namespace heddle::compiler
