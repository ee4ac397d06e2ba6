#pragma once

// Where something is over: after the last of a set of instructions, on every way out.

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstrTypes.h"

namespace heddle::compiler {

// Calls `Insert` with each place that is reached when the last of `Uses` was executed, or when none of them will be any
// more, coming from `Start`, which dominates them; `Dominated` tells whether Start dominates that place too. A way
// that ends the process is no way out. Coming back to Start is one.
void forEachExit(llvm::Instruction *Start, const llvm::SmallPtrSetImpl<llvm::Instruction *> &Uses,
                 llvm::DominatorTree &Dominators,
                 llvm::function_ref<void(llvm::Instruction *Before, bool Dominated)> Insert);

} // namespace heddle::compiler
