#pragma once

// The probe of one task: where it stands, and what it says.

#include "pass/Symbols.h"
#include "pass/Tasks.h"
#include "llvm/ADT/SmallVector.h"

namespace heddle::compiler {

// Just before the first of the task's operations: the nearest common dominator of all of them, outside of loops that
// hold only some.
llvm::Instruction *probePoint(const Task &T, llvm::DominatorTree &Dominators, llvm::LoopInfo &Loops);

// What of the task can be said at the probe, as values of the program.
struct ProbeWords {
  struct Buffer {
    llvm::Value *Bytes, *Count;
  };
  struct Shape {
    const Launch *From;
    llvm::Value *Grid[3], *Block[3], *SharedBytes, *Stream;
  };
  llvm::SmallVector<Buffer> Buffers;
  llvm::SmallVector<Shape> Launches;
  unsigned UnknownSizes = 0;
  bool HasBounds = false; // a size that is only known not to be larger
  llvm::SmallPtrSet<const Launch *, 4> UnknownShapes;
};

// Buffers on branches that exclude each other share an entry of the larger size; one under a condition that is known
// at the probe counts only where it holds; one in a loop counts as often as the loop turns.
ProbeWords findWords(const Task &T, llvm::Instruction *Probe, Symbols &At, llvm::DominatorTree &Dominators,
                     llvm::LoopInfo &Loops);

// Writes the probe; returns the task's number. `Pointers` has a word for each launch of a task that may run apart.
llvm::Value *insertBegin(const ProbeWords &Words, llvm::ArrayRef<uint64_t> Pointers, llvm::StringRef Name,
                         llvm::Instruction *Probe);

} // namespace heddle::compiler
