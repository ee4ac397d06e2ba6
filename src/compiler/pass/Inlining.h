#pragma once

#include "llvm/IR/Module.h"

namespace heddle::compiler {

// Marks the functions that do GPU work to be inlined, so that a task's allocations and launches meet in one function.
// The program's growth is bounded: a function that is too large, or called from too many places, stays as it is, and so
// does what the user keeps from being inlined. Those carry the reason in an attribute.
inline constexpr const char *KeptAttribute = "heddle-not-inlined";
void inlineGpuFunctions(llvm::Module &M);

// Why the function is not inlined; empty where it is, or has no GPU work.
llvm::StringRef reasonNotInlined(const llvm::Function &F);

} // namespace heddle::compiler
