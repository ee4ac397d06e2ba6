#pragma once

// What became of each launch, for people: remarks, and with HEDDLE_CC_REPORT=FILE a line each for `heddle cc --report`.

#include "pass/Tasks.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"

namespace heddle::compiler {

struct Verdict {
  enum class Kind { Bound, Partly, Lazy } What = Kind::Lazy;
  std::string Text; // bound: to what; else why not
};

void report(const Launch &L, const Verdict &V, llvm::OptimizationRemarkEmitter &Remarks);

// A function whose launches and allocations do not meet those of its callers, and why.
void reportNotInlined(llvm::Function &F, llvm::StringRef Why, llvm::OptimizationRemarkEmitter &Remarks);

// "file:line" of an instruction, or what is known of it.
std::string placeOf(const llvm::Instruction &I);

} // namespace heddle::compiler
