#pragma once

#include "llvm/IR/PassManager.h"

namespace heddle::compiler {

// logl of a constant becomes a constant, as in g++; clang folds logarithms of double and float only. The random
// distributions of libstdc++ call it twice for each number that they draw: without this a program that fills its inputs
// by them takes ten times as long for that as by nvcc's own host compiler.
struct FoldLogarithmPass : llvm::PassInfoMixin<FoldLogarithmPass> {
  llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &);
};

} // namespace heddle::compiler
