#include "pass/Exits.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

class Exits {
public:
  Exits(Instruction *Start, const SmallPtrSetImpl<Instruction *> &Uses, DominatorTree &Dominators)
      : Start(Start), Uses(Uses), Dominators(Dominators) {
    findAhead();
  }

  // Ahead: coming in at the block's top, a use is still to come before Start comes again.
  bool aheadIn(const BasicBlock *Block) const { return Block != Start->getParent() && Ahead.contains(Block); }
  bool aheadOut(const BasicBlock *Block) const {
    return any_of(successors(Block), [&](const BasicBlock *Next) { return aheadIn(Next); });
  }

  // The last use in the block, behind Start where it is Start's.
  Instruction *lastUse(BasicBlock *Block) const {
    for (Instruction &I : reverse(*Block)) {
      if (Uses.contains(&I))
        return &I;
      if (&I == Start)
        return nullptr;
    }
    return nullptr;
  }

  void forEach(function_ref<void(Instruction *, bool)> Insert) {
    SmallSetVector<BasicBlock *, 16> Tops;
    SmallVector<Instruction *> Places;
    for (BasicBlock *Block : reachable()) {
      const bool Out = aheadOut(Block);
      if (Out) {
        for (BasicBlock *Next : successors(Block))
          if (!aheadIn(Next) && leavesAlive(Next))
            Tops.insert(Next);
        continue;
      }
      Instruction *Last = lastUse(Block);
      if (!Last && Block == Start->getParent())
        Last = Start;
      else if (!Last)
        continue;
      if (!Last->isTerminator()) {
        Places.push_back(Last->getNextNode());
        continue;
      }
      for (BasicBlock *Next : successors(Block))
        if (leavesAlive(Next))
          Tops.insert(Next);
    }
    for (Instruction *Before : Places)
      if (!isa<UnreachableInst>(Before))
        Insert(Before, true);
    for (BasicBlock *Top : Tops)
      Insert(&*Top->getFirstInsertionPt(), Top != Start->getParent() && Dominators.dominates(Start, Top));
  }

private:
  void findAhead() {
    SmallVector<const BasicBlock *> Work;
    for (Instruction *Use : Uses)
      if (Ahead.insert(Use->getParent()).second)
        Work.push_back(Use->getParent());
    while (!Work.empty()) {
      const BasicBlock *Block = Work.pop_back_val();
      if (Block == Start->getParent())
        continue; // what comes before Start has nothing ahead
      for (const BasicBlock *Before : predecessors(Block))
        if (Ahead.insert(Before).second)
          Work.push_back(Before);
    }
  }

  // Blocks behind Start from which, at their top, uses were ahead.
  SmallVector<BasicBlock *> reachable() const {
    SmallSetVector<BasicBlock *, 32> Blocks;
    Blocks.insert(Start->getParent());
    for (unsigned I = 0; I < Blocks.size(); ++I)
      for (BasicBlock *Next : successors(Blocks[I]))
        if (aheadIn(Next))
          Blocks.insert(Next);
    return Blocks.takeVector();
  }

  // Whether the function can still return or throw from here; exit() and abort() need no end.
  bool leavesAlive(const BasicBlock *From) const {
    SmallSetVector<const BasicBlock *, 16> Blocks;
    Blocks.insert(From);
    for (unsigned I = 0; I < Blocks.size(); ++I) {
      if (isa<ReturnInst>(Blocks[I]->getTerminator()) || isa<ResumeInst>(Blocks[I]->getTerminator()) ||
          Blocks[I] == Start->getParent())
        return true;
      Blocks.insert(succ_begin(Blocks[I]), succ_end(Blocks[I]));
    }
    return false;
  }

  Instruction *Start;
  const SmallPtrSetImpl<Instruction *> &Uses;
  DominatorTree &Dominators;
  SmallPtrSet<const BasicBlock *, 32> Ahead;
};

} // namespace

void forEachExit(Instruction *Start, const SmallPtrSetImpl<Instruction *> &Uses, DominatorTree &Dominators,
                 function_ref<void(Instruction *, bool)> Insert) {
  Exits(Start, Uses, Dominators).forEach(Insert);
}

} // namespace heddle::compiler
