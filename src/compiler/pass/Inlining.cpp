#include "pass/Inlining.h"

#include "pass/Cuda.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

// In instructions before any optimisation, of which a line of source has about ten: the largest function that is
// inlined, and by how much a module may grow altogether if that is more than it has.
constexpr uint64_t LargestInlined = 8000, SmallestGrowth = 200000;

bool doesGpuWork(const Function &F) {
  return any_of(instructions(F), [](const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    if (!Call)
      return false;
    const Operation Op = operationOf(*Call);
    const Function *Called = calledFunction(*Call);
    return (Op != Operation::None && Op != Operation::OtherApi) ||
           (Called && is_contained(allocationNames(), Called->getName()));
  });
}

// Functions that do GPU work, themselves or through functions of this module.
SetVector<Function *> gpuFunctions(Module &M) {
  SetVector<Function *> Work;
  for (Function &F : M) {
    if (!F.isDeclaration() && !F.hasFnAttribute(StubAttribute) && !F.hasFnAttribute(OwnAttribute) && doesGpuWork(F))
      Work.insert(&F);
  }
  for (unsigned I = 0; I < Work.size(); ++I) {
    for (User *U : Work[I]->users()) {
      auto *Call = dyn_cast<CallBase>(U);
      if (Call && calledFunction(*Call) == Work[I] && !Call->getFunction()->hasFnAttribute(StubAttribute))
        Work.insert(Call->getFunction());
    }
  }
  return Work;
}

// Functions that get the address of an object which GPU functions get too: constructors, destructors and methods of a
// class that holds buffers. Only when they are inlined as well is it known that they leave its pointers alone.
class ObjectFunctions {
public:
  explicit ObjectFunctions(SetVector<Function *> &Work) : Work(Work) {}

  void add() {
    for (unsigned I = 0; I < Work.size(); ++I) {
      for (Instruction &Variable : Work[I]->getEntryBlock()) {
        if (isa<AllocaInst>(Variable) && cast<AllocaInst>(Variable).getAllocatedType()->isAggregateType() &&
            reachesWork(&Variable))
          follow(&Variable);
      }
    }
  }

private:
  // The calls that get the address or one within the object; before optimisation it goes through variables too.
  SmallVector<std::pair<Function *, unsigned>> callsWith(Value *Address) {
    SmallVector<std::pair<Function *, unsigned>> Calls;
    SmallVector<Value *> Addresses{Address};
    SmallPtrSet<Value *, 8> Seen;
    while (!Addresses.empty()) {
      Value *A = Addresses.pop_back_val();
      if (!Seen.insert(A).second)
        continue;
      for (Use &U : A->uses()) {
        auto *I = cast<Instruction>(U.getUser());
        if (isa<GetElementPtrInst>(I)) {
          Addresses.push_back(I);
        } else if (auto *Store = dyn_cast<StoreInst>(I)) {
          if (isa<AllocaInst>(Store->getPointerOperand()) && Store->getValueOperand() == A)
            for (User *Reader : Store->getPointerOperand()->users())
              if (isa<LoadInst>(Reader))
                Addresses.push_back(Reader);
        } else if (auto *Call = dyn_cast<CallBase>(I)) {
          Function *F = calledFunction(*Call);
          if (F && !F->isDeclaration() && Call->isArgOperand(&U) && Call->getArgOperandNo(&U) < F->arg_size())
            Calls.emplace_back(F, Call->getArgOperandNo(&U));
        }
      }
    }
    return Calls;
  }

  bool reachesWork(Value *Address) {
    return any_of(callsWith(Address), [&](const auto &Call) {
      return Work.contains(Call.first) && !Call.first->hasFnAttribute(StubAttribute);
    });
  }

  void follow(Value *Address) {
    for (const auto &[F, Parameter] : callsWith(Address)) {
      if (F->hasFnAttribute(StubAttribute) || F->hasFnAttribute(OwnAttribute) ||
          !Followed.insert(F->getArg(Parameter)).second)
        continue;
      Work.insert(F);
      follow(F->getArg(Parameter));
    }
  }

  SetVector<Function *> &Work;
  SmallPtrSet<Argument *, 16> Followed;
};

// Decides function by function, callees first, so that a function's size counts what has come into it.
class Inliner {
public:
  explicit Inliner(Module &M) : Graph(M), Left(std::max<uint64_t>(M.getInstructionCount(), SmallestGrowth)) {}

  void decideAll(ArrayRef<Function *> Functions) {
    const SmallPtrSet<Function *, 32> Wanted(Functions.begin(), Functions.end());
    for (auto It = scc_begin(&Graph); !It.isAtEnd(); ++It) {
      for (const CallGraphNode *Node : *It)
        if (Function *F = Node->getFunction(); F && Wanted.contains(F))
          decide(*F, It.hasCycle());
    }
  }

private:
  void decide(Function &F, bool Recursive) {
    const uint64_t Calls = callsOf(F);
    // What -O0 leaves alone is left to the lazy runtime, which the launches' remarks say.
    if (Calls == 0 || F.hasFnAttribute(Attribute::OptimizeNone))
      return;
    if (Recursive)
      return keep(F, "it is recursive");
    if (F.hasFnAttribute(Attribute::NoInline))
      return keep(F, "it is marked noinline");
    if (F.isVarArg())
      return keep(F, "it has a variable number of arguments");
    const uint64_t Size = sizeOf(F);
    if (Size > LargestInlined)
      return keep(F, "it has " + Twine(Size) + " instructions, more than " + Twine(LargestInlined));
    // The last call of a function that nobody else knows takes its place.
    const uint64_t Copies = F.hasLocalLinkage() && F.getNumUses() == Calls ? Calls - 1 : Calls;
    if (Copies * Size > Left)
      return keep(F, "its " + Twine(Size) + " instructions are called from " + Twine(Calls) +
                         " places, and the program may grow by " + Twine(Left) + " more");
    Left -= Copies * Size;
    Sizes[&F] = Size;
    F.addFnAttr(Attribute::AlwaysInline);
  }

  static uint64_t callsOf(const Function &F) {
    return count_if(F.users(), [&](const User *U) {
      const auto *Call = dyn_cast<CallBase>(U);
      return Call && calledFunction(*Call) == &F;
    });
  }

  uint64_t sizeOf(const Function &F) const {
    uint64_t Size = F.getInstructionCount();
    for (const Instruction &I : instructions(F))
      if (const auto *Call = dyn_cast<CallBase>(&I))
        Size += Sizes.lookup(calledFunction(*Call));
    return Size;
  }

  static void keep(Function &F, const Twine &Why) { F.addFnAttr(KeptAttribute, Why.str()); }

  CallGraph Graph;
  uint64_t Left;
  DenseMap<const Function *, uint64_t> Sizes; // of those that are inlined
};

} // namespace

void inlineGpuFunctions(Module &M) {
  SetVector<Function *> Work = gpuFunctions(M);
  const size_t Own = Work.size();
  ObjectFunctions(Work).add();
  // Those with GPU work of their own come first: what only gets the address of an object shares what is left.
  Inliner Inline(M);
  Inline.decideAll(Work.getArrayRef().take_front(Own));
  Inline.decideAll(Work.getArrayRef().drop_front(Own));
}

StringRef reasonNotInlined(const Function &F) { return F.getFnAttribute(KeptAttribute).getValueAsString(); }

} // namespace heddle::compiler
