#include "pass/EagerFree.h"

#include "pass/Cuda.h"
#include "pass/Exits.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

struct Uses {
  SmallPtrSet<Instruction *, 8> Work; // everything but frees
  SmallVector<CallBase *, 2> Frees;
};

bool mayUse(CallBase *Call, Allocation *Root) {
  Traced Memory;
  for (Value *Argument : Call->args())
    if (Argument->getType()->isPointerTy() && operationOf(*Call) != Operation::Push) {
      tracePointer(Argument, Memory);
      traceContents(Argument, Memory);
    }
  return Memory.Roots.contains(Root);
}

// Which of the task's operations touch the buffer; false where one frees something else as well.
bool findUses(const Task &T, Allocation *Root, Uses &Found) {
  for (CallBase *Call : T.Operations) {
    const Operation Op = operationOf(*Call);
    if (Call == Root || Op == Operation::Push || Op == Operation::Alloc || !mayUse(Call, Root))
      continue;
    if (Op != Operation::Free) {
      Found.Work.insert(Call);
      continue;
    }
    Traced Freed;
    tracePointer(Call->getArgOperand(0), Freed);
    if (!Freed.complete() || Freed.Roots.size() != 1)
      return false;
    Found.Frees.push_back(Call);
  }
  return true;
}

// The buffer's pointer, as the allocation gave it.
Value *pointerOf(Allocation *Root) {
  for (User *U : Root->users()) {
    auto *Extract = dyn_cast<ExtractValueInst>(U);
    if (Extract && Extract->getIndices().front() == 0)
      return Extract;
  }
  return nullptr;
}

// Whether device work of others lies between: else the free itself comes soon enough.
bool otherWorkBetween(const Task &T, const Uses &Found, Instruction *Place, DominatorTree &Dominators,
                      LoopInfo &Loops) {
  return any_of(T.Operations, [&](CallBase *Call) {
    const Operation Op = operationOf(*Call);
    if (Op == Operation::Free || Op == Operation::Push || Op == Operation::Alloc || Found.Work.contains(Call))
      return false;
    return isPotentiallyReachable(Place, Call, nullptr, &Dominators, &Loops) &&
           any_of(Found.Frees,
                  [&](CallBase *Free) { return isPotentiallyReachable(Call, Free, nullptr, &Dominators, &Loops); });
  });
}

} // namespace

unsigned insertEarlyFrees(const Task &T, DominatorTree &Dominators, LoopInfo &Loops) {
  unsigned Count = 0;
  for (Allocation *Root : T.Roots) {
    Uses Found;
    Value *Pointer = pointerOf(Root);
    // In a loop the next turn's buffer must not be taken for this one's.
    if (Loops.getLoopFor(Root->getParent()) && !isUsedDirectly(Root))
      continue;
    if (!Pointer || !isClosed(Root) || !findUses(T, Root, Found) || Found.Frees.empty() || Found.Work.empty())
      continue;
    const bool Dominates = all_of(Found.Work, [&](Instruction *I) { return Dominators.dominates(Root, I); });
    if (!Dominates)
      continue;
    SmallVector<Instruction *> Places;
    bool Everywhere = true;
    forEachExit(cast<Instruction>(Pointer), Found.Work, Dominators, [&](Instruction *Before, bool Dominated) {
      Everywhere &= Dominated;
      Places.push_back(Before);
    });
    if (!Everywhere)
      continue;
    bool Inserted = false;
    for (Instruction *Before : Places) {
      if (!otherWorkBetween(T, Found, Before, Dominators, Loops))
        continue;
      CallInst::Create(Root->getModule()->getFunction(FreeEarlyName), {Pointer}, "", Before->getIterator());
      Inserted = true;
    }
    Count += Inserted;
  }
  return Count;
}

} // namespace heddle::compiler
