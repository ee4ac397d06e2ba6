#pragma once

// Eager Free (papers: eager scheduling, section 5.1): a buffer goes back at its last use, not where it is freed.

#include "pass/Tasks.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"

namespace heddle::compiler {

// Inserts an early free behind the last use of each of the task's buffers that nothing else can reach, wherever other
// GPU work still lies between that and its free. Returns for how many buffers.
unsigned insertEarlyFrees(const Task &T, llvm::DominatorTree &Dominators, llvm::LoopInfo &Loops);

} // namespace heddle::compiler
