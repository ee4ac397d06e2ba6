#include "pass/Symbols.h"

#include "pass/Cuda.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/Loads.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

constexpr unsigned MaxDepth = 32; // of a repeated computation

// Functions of C's library that write to nothing of the program's own.
bool writesNothing(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Cases("printf", "puts", "putchar", "fprintf", "fputs", "fputc", "fwrite", "fflush", "perror", "exit", true)
      .Cases("clock", "usleep", "sleep", "malloc", "calloc", "srand", "rand", true)
      .Cases("heddle_malloc", "heddle_malloc_async", "heddle_malloc_pitch", "heddle_malloc_3d", true)
      .Default(false);
}

} // namespace

Value *Symbols::at(Value *V) {
  if (repeatable(V, false, 0))
    return repeat(V);
  return largest(V);
}

Value *Symbols::most(Value *V) {
  if (Value *Exact = at(V))
    return Exact;
  SmallVector<Value *> Choices;
  if (auto *Select = dyn_cast<SelectInst>(V))
    Choices = {Select->getTrueValue(), Select->getFalseValue()};
  else if (auto *Phi = dyn_cast<PHINode>(V); Phi && !Loops.isLoopHeader(Phi->getParent()))
    Choices.assign(Phi->value_op_begin(), Phi->value_op_end());
  Value *Largest = nullptr;
  for (Value *Choice : Choices) {
    Value *Bound = most(Choice);
    if (!Bound)
      return nullptr;
    IRBuilder<> B(Probe);
    Largest = Largest ? B.CreateBinaryIntrinsic(Intrinsic::umax, Largest, Bound) : Bound;
  }
  return Largest;
}

Value *Symbols::about(Value *V) {
  if (Value *Exact = at(V))
    return Exact;
  return repeatable(V, true, 0) ? repeat(V) : nullptr;
}

const Loop *Symbols::loopBehind(BasicBlock *Block) const {
  const Loop *Outermost = nullptr;
  for (const Loop *L = Loops.getLoopFor(Block); L && !L->contains(Probe); L = L->getParentLoop())
    Outermost = L;
  return Outermost;
}

bool Symbols::repeatable(Value *V, bool Roughly, unsigned Depth) {
  auto *I = dyn_cast<Instruction>(V);
  if (!I || Dominators.dominates(I, Probe))
    return true;
  if (Depth > MaxDepth)
    return false;
  if (auto *Phi = dyn_cast<PHINode>(I)) {
    const Loop *L = Loops.getLoopFor(Phi->getParent());
    const bool Header = L && L->getHeader() == Phi->getParent() && !L->contains(Probe) && L->getLoopPreheader();
    return Roughly && Header && repeatable(Phi->getIncomingValueForBlock(L->getLoopPreheader()), Roughly, Depth + 1);
  }
  if (auto *Load = dyn_cast<LoadInst>(I))
    return Load->isSimple() && repeatable(Load->getPointerOperand(), Roughly, Depth + 1) && unchangedSince(Load) &&
           readableAtProbe(Load);
  if (I->mayReadOrWriteMemory() || !isSafeToSpeculativelyExecute(I))
    return false;
  return all_of(I->operands(), [&](Value *Operand) { return repeatable(Operand, Roughly, Depth + 1); });
}

bool Symbols::mayWrite(Instruction &I, const MemoryLocation &Location) {
  if (!I.mayWriteToMemory() || !isModSet(Aliases.getModRefInfo(&I, Location)))
    return false;
  auto *Call = dyn_cast<CallBase>(&I);
  const Function *F = Call ? calledFunction(*Call) : nullptr;
  if (!F)
    return true;
  if (Call->isLifetimeStartOrEnd() || writesNothing(F->getName()))
    return false;
  const Operation Op = operationOf(*Call);
  if (Op == Operation::None)
    return true;
  // The runtime's functions write to what they are given pointers to, and only a copy to the host writes data.
  constexpr uint64_t HostToDevice = 1, DeviceToDevice = 3;
  if (Op == Operation::Copy) {
    const auto *Kind = dyn_cast<ConstantInt>(Call->getArgOperand(3));
    if (Kind && (Kind->getZExtValue() == HostToDevice || Kind->getZExtValue() == DeviceToDevice))
      return false;
  } else if (Op != Operation::OtherApi) {
    return false;
  }
  return any_of(Call->args(), [&](const Use &Argument) {
    return Argument->getType()->isPointerTy() &&
           !Aliases.isNoAlias(MemoryLocation::getBeforeOrAfter(Argument), Location);
  });
}

// Whether no instruction on any way from the probe to the load may write what is loaded.
bool Symbols::unchangedSince(LoadInst *Load) {
  const MemoryLocation Location = MemoryLocation::get(Load);
  const auto Writes = [&](BasicBlock::iterator From, BasicBlock::iterator To) {
    return std::any_of(From, To, [&](Instruction &I) { return mayWrite(I, Location); });
  };
  BasicBlock *Start = Probe->getParent(), *Last = Load->getParent();
  if (!Dominators.dominates(Start, Last))
    return false;
  if (Start == Last && Probe->comesBefore(Load) && !loopBehind(Last))
    return !Writes(Probe->getIterator(), Load->getIterator());
  SmallVector<BasicBlock *> Work(predecessors(Last));
  if (Writes(Last->begin(), Load->getIterator()))
    return false;
  SmallPtrSet<BasicBlock *, 32> Seen;
  while (!Work.empty()) {
    BasicBlock *Block = Work.pop_back_val();
    if (!Seen.insert(Block).second)
      continue;
    if (Writes(Block == Start ? Probe->getIterator() : Block->begin(), Block->end()))
      return false;
    if (Block != Start)
      Work.append(pred_begin(Block), pred_end(Block));
  }
  return true;
}

// A load that is repeated earlier must not fault there: its object was accessed before, or is always accessed later.
bool Symbols::readableAtProbe(LoadInst *Load) {
  const Value *Object = getUnderlyingObject(Load->getPointerOperand());
  if (isa<AllocaInst>(Object) || isa<GlobalVariable>(Object))
    return true;
  if (isSafeToSpeculativelyExecute(Load, Probe, nullptr, &Dominators))
    return true;
  const auto Accesses = [&](const User *U) {
    const auto *I = dyn_cast<Instruction>(U);
    return I && (isa<LoadInst>(I) || (isa<StoreInst>(I) && getLoadStorePointerOperand(I) == U)) &&
           Dominators.dominates(I, Probe);
  };
  SmallVector<const Value *> Work{Object};
  for (unsigned I = 0; I < Work.size(); ++I) {
    for (const User *U : Work[I]->users()) {
      if (Accesses(U))
        return true;
      if (isa<GetElementPtrInst>(U))
        Work.push_back(U);
    }
  }
  if (Load->getParent() != Probe->getParent() || !Probe->comesBefore(Load))
    return false;
  return std::all_of(Probe->getIterator(), Load->getIterator(), [](Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    return isGuaranteedToTransferExecutionToSuccessor(&I) || (Call && operationOf(*Call) != Operation::None);
  });
}

Value *Symbols::repeat(Value *V) {
  auto *I = dyn_cast<Instruction>(V);
  if (!I || Dominators.dominates(I, Probe))
    return V;
  if (Value *Known = Repeated.lookup(V))
    return Known;
  if (auto *Phi = dyn_cast<PHINode>(I)) {
    const Loop *L = Loops.getLoopFor(Phi->getParent());
    return Repeated[V] = repeat(Phi->getIncomingValueForBlock(L->getLoopPreheader()));
  }
  Instruction *Clone = I->clone();
  for (Use &Operand : Clone->operands())
    Operand = repeat(Operand);
  // What was known where it stood may not hold here.
  Clone->dropUnknownNonDebugMetadata();
  Clone->dropPoisonGeneratingFlags();
  Clone->insertBefore(Probe);
  if (I->hasName())
    Clone->setName(I->getName());
  return Repeated[V] = Clone;
}

// Recurrences of loops behind the probe become the larger of their first and last value.
const SCEV *Symbols::widen(const SCEV *S) {
  struct Widener : SCEVRewriteVisitor<Widener> {
    Widener(ScalarEvolution &SE, const Instruction *Probe) : SCEVRewriteVisitor(SE), Probe(Probe) {}
    const SCEV *visitAddRecExpr(const SCEVAddRecExpr *Recurrence) {
      if (Recurrence->getLoop()->contains(Probe))
        return Recurrence;
      const SCEV *Turns = SE.getBackedgeTakenCount(Recurrence->getLoop());
      if (isa<SCEVCouldNotCompute>(Turns)) {
        Failed = true;
        return Recurrence;
      }
      const SCEV *Last = Recurrence->evaluateAtIteration(SE.getTruncateOrZeroExtend(Turns, Recurrence->getType()), SE);
      return SE.getUMaxExpr(visit(Recurrence->getStart()), visit(Last));
    }
    const Instruction *Probe;
    bool Failed = false;
  };
  // Only where the expression is the recurrence itself, up to casts: elsewhere the larger part may make the less.
  const SCEV *Bare = S;
  while (const auto *Cast = dyn_cast<SCEVCastExpr>(Bare))
    Bare = Cast->getOperand();
  if (!isa<SCEVAddRecExpr>(Bare))
    return S;
  Widener W(Evolution, Probe);
  const SCEV *Wide = W.visit(S);
  return W.Failed ? S : Wide;
}

bool Symbols::expandable(const SCEV *S) {
  return !SCEVExprContains(S, [&](const SCEV *Part) {
    if (isa<SCEVCouldNotCompute>(Part))
      return true;
    if (const auto *Recurrence = dyn_cast<SCEVAddRecExpr>(Part))
      return !Recurrence->getLoop()->contains(Probe);
    const auto *Unknown = dyn_cast<SCEVUnknown>(Part);
    return Unknown && !repeatable(Unknown->getValue(), false, 0);
  });
}

Value *Symbols::expand(const SCEV *S, Type *T) {
  ValueToSCEVMapTy Known;
  SmallVector<Value *> Leaves;
  struct Collector {
    SmallVectorImpl<Value *> &Leaves;
    bool follow(const SCEV *Part) {
      if (const auto *Unknown = dyn_cast<SCEVUnknown>(Part))
        Leaves.push_back(Unknown->getValue());
      return true;
    }
    bool isDone() const { return false; }
  } Collect{Leaves};
  SCEVTraversal<Collector>(Collect).visitAll(S);
  for (Value *Leaf : Leaves)
    Known[Leaf] = Evolution.getSCEV(repeat(Leaf));
  const SCEV *Here = SCEVParameterRewriter::rewrite(S, Evolution, Known);
  SCEVExpander Expander(Evolution, Probe->getModule()->getDataLayout(), "heddle");
  return Expander.isSafeToExpandAt(Here, Probe) ? Expander.expandCodeFor(Here, T, Probe) : nullptr;
}

Value *Symbols::largest(Value *V) {
  if (!Evolution.isSCEVable(V->getType()))
    return nullptr;
  const SCEV *S = widen(Evolution.getSCEV(V));
  return expandable(S) ? expand(S, V->getType()) : nullptr;
}

Value *Symbols::turns(BasicBlock *Block, IRBuilder<> &B) {
  Value *Product = B.getInt64(1);
  for (const Loop *L = Loops.getLoopFor(Block); L && !L->contains(Probe); L = L->getParentLoop()) {
    const SCEV *Back = Evolution.getBackedgeTakenCount(L);
    if (isa<SCEVCouldNotCompute>(Back))
      return nullptr;
    const SCEV *Count = Evolution.getTripCountFromExitCount(Back, B.getInt64Ty(), L);
    if (!expandable(Count))
      return nullptr;
    Value *Times = expand(Count, B.getInt64Ty());
    if (!Times)
      return nullptr;
    B.SetInsertPoint(Probe);
    Product = B.CreateMul(Product, Times);
  }
  return Product;
}

} // namespace heddle::compiler
