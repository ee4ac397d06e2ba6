#pragma once

// Values of the program, as they will be, at a point before they are computed: what a probe says is made of them.

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"

namespace heddle::compiler {

class Symbols {
public:
  // Everything is made before `Probe`.
  Symbols(llvm::Instruction *Probe, llvm::DominatorTree &Dominators, llvm::LoopInfo &Loops,
          llvm::ScalarEvolution &Evolution, llvm::AAResults &Aliases)
      : Probe(Probe), Dominators(Dominators), Loops(Loops), Evolution(Evolution), Aliases(Aliases) {}

  // The value as it will be; nullptr where that cannot be known at the probe. A value that dominates the probe is used,
  // a computation without effects is repeated, a load too if nobody writes in between, and one that varies in a loop
  // behind the probe is its larger end.
  llvm::Value *at(llvm::Value *V);
  // Or else a bound from above: where ways meet, the largest of theirs.
  llvm::Value *most(llvm::Value *V);
  // Or else an approximation: in a loop behind the probe, the value of the first turn.
  llvm::Value *about(llvm::Value *V);
  // How often the block runs for each time that the probe runs; nullptr if that cannot be known.
  llvm::Value *turns(llvm::BasicBlock *Block, llvm::IRBuilder<> &B);

private:
  bool repeatable(llvm::Value *V, bool Roughly, unsigned Depth);
  bool unchangedSince(llvm::LoadInst *Load);
  bool readableAtProbe(llvm::LoadInst *Load);
  bool mayWrite(llvm::Instruction &I, const llvm::MemoryLocation &Location);
  llvm::Value *repeat(llvm::Value *V);
  llvm::Value *largest(llvm::Value *V);
  const llvm::SCEV *widen(const llvm::SCEV *S);
  bool expandable(const llvm::SCEV *S);
  llvm::Value *expand(const llvm::SCEV *S, llvm::Type *T);
  const llvm::Loop *loopBehind(llvm::BasicBlock *Block) const;

  llvm::Instruction *Probe;
  llvm::DominatorTree &Dominators;
  llvm::LoopInfo &Loops;
  llvm::ScalarEvolution &Evolution;
  llvm::AAResults &Aliases;
  llvm::DenseMap<llvm::Value *, llvm::Value *> Repeated;
};

} // namespace heddle::compiler
