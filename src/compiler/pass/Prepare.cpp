#include "pass/Prepare.h"

#include "pass/Cuda.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

// Inlining is bounded: a function of more than this, or that would add more than that over all its calls, stays.
constexpr uint64_t MaxInlined = 8000, MaxAdded = 80000; // instructions

void markNoThrow(Module &M) {
  for (Function &F : M) {
    if (F.isDeclaration() && isRuntimeName(F.getName()))
      F.setDoesNotThrow();
  }
}

// Functions of recursive cycles, which cannot be inlined to an end.
SmallPtrSet<const Function *, 16> recursiveFunctions(Module &M) {
  SmallPtrSet<const Function *, 16> Recursive;
  CallGraph Graph(M);
  for (auto It = scc_begin(&Graph); !It.isAtEnd(); ++It) {
    if (!It.hasCycle())
      continue;
    for (const CallGraphNode *Node : *It)
      if (const Function *F = Node->getFunction())
        Recursive.insert(F);
  }
  return Recursive;
}

bool allocates(const Function &F) {
  return is_contained({"cudaMalloc", "cudaMallocAsync", "cudaMallocPitch"}, F.getName());
}

bool doesGpuWork(const Function &F) {
  return any_of(instructions(F), [](const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    if (!Call)
      return false;
    const Operation Op = operationOf(*Call);
    const Function *Called = calledFunction(*Call);
    return (Op != Operation::None && Op != Operation::OtherApi) || (Called && allocates(*Called));
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

// Instructions of a function when everything of the set that it calls has been inlined into it.
class InlinedSize {
public:
  explicit InlinedSize(const SmallPtrSetImpl<Function *> &Set) : Set(Set) {}

  uint64_t of(Function *F) {
    if (const auto Known = Sizes.find(F); Known != Sizes.end())
      return Known->second;
    uint64_t Size = F->getInstructionCount();
    for (const Instruction &I : instructions(*F)) {
      const auto *Call = dyn_cast<CallBase>(&I);
      Function *Called = Call ? calledFunction(*Call) : nullptr;
      if (Called && Set.contains(Called))
        Size += of(Called);
    }
    return Sizes[F] = Size;
  }

private:
  const SmallPtrSetImpl<Function *> &Set; // without recursion
  DenseMap<Function *, uint64_t> Sizes;
};

void inlineGpuFunctions(Module &M) {
  const auto Recursive = recursiveFunctions(M);
  SetVector<Function *> Work = gpuFunctions(M);
  ObjectFunctions(Work).add();
  SmallPtrSet<Function *, 32> Wanted;
  for (Function *F : Work) {
    // What the user keeps from being inlined (and everything of -O0) is left to the lazy runtime.
    if (!Recursive.contains(F) && !F->hasFnAttribute(Attribute::OptimizeNone) &&
        !F->hasFnAttribute(Attribute::NoInline) && !F->isVarArg() && F->getName() != "main")
      Wanted.insert(F);
  }
  InlinedSize Size(Wanted);
  for (Function *F : Work) {
    if (Wanted.contains(F) && Size.of(F) <= MaxInlined && Size.of(F) * F->getNumUses() <= MaxAdded)
      F->addFnAttr(Attribute::AlwaysInline);
  }
}

// An invoke of what does not throw is a call and a branch.
void eraseCall(CallBase *Call) {
  if (auto *Invoke = dyn_cast<InvokeInst>(Call)) {
    Invoke->getUnwindDest()->removePredecessor(Invoke->getParent());
    BranchInst::Create(Invoke->getNormalDest(), Invoke->getIterator());
  }
  Call->eraseFromParent();
}

// A function of the runtime that stores a buffer's address where its first argument points, and what is made of it.
struct Maker {
  const char *Name, *Becomes;
  ArrayRef<unsigned> Arguments; // that are handed on
  int PitchAt;                  // the argument where the pitch is stored; -1: none
};

constexpr unsigned Bytes[] = {1}, BytesAndStream[] = {1, 2}, WidthAndHeight[] = {2, 3};
const Maker Makers[] = {{"cudaMalloc", MallocName, Bytes, -1},
                        {"cudaMallocAsync", MallocAsyncName, BytesAndStream, -1},
                        {"cudaMallocPitch", MallocPitchName, WidthAndHeight, 1}};

void makeValue(CallBase *Call, const Maker &How, Function *Value) {
  IRBuilder<> B(Call);
  SmallVector<llvm::Value *> Arguments;
  for (unsigned Number : How.Arguments)
    Arguments.push_back(Call->getArgOperand(Number));
  CallInst *Made = B.CreateCall(Value, Arguments);
  B.CreateStore(B.CreateExtractValue(Made, 0, "device"), Call->getArgOperand(0));
  if (How.PitchAt >= 0)
    B.CreateStore(B.CreateExtractValue(Made, 2, "pitch"), Call->getArgOperand(How.PitchAt));
  Call->replaceAllUsesWith(B.CreateExtractValue(Made, 1, "error"));
  eraseCall(Call);
}

void makeAllocationsValues(Module &M) {
  for (const Maker &How : Makers) {
    Function *Malloc = M.getFunction(How.Name);
    Function *Value = M.getFunction(How.Becomes);
    if (!Malloc || !Value)
      continue;
    const unsigned Arguments = How.Arguments.back() + 1;
    for (User *U : make_early_inc_range(Malloc->users())) {
      auto *Call = dyn_cast<CallBase>(U);
      if (Call && calledFunction(*Call) == Malloc && Call->arg_size() == Arguments && Call->getFunction() != Value &&
          !Call->getFunction()->hasOptNone())
        makeValue(Call, How, Value);
    }
  }
}

// Device code, and objects without GPU work (nvcc's link stub among them), are left alone.
bool concerns(const Module &M) {
  const Triple Target(M.getTargetTriple());
  if (Target.isNVPTX() || Target.isAMDGPU() || M.getFunction(BeginName))
    return false;
  for (const char *Name : {"cudaMalloc", "cudaMallocAsync", "cudaMallocPitch", "__cudaPushCallConfiguration"}) {
    const Function *F = M.getFunction(Name);
    if (F && !F->use_empty())
      return true;
  }
  return false;
}

} // namespace

PreservedAnalyses PreparePass::run(Module &M, ModuleAnalysisManager &) {
  if (!concerns(M))
    return PreservedAnalyses::all();
  markKernelStubs(M);
  defineEntryPoints(M);
  markNoThrow(M);
  inlineGpuFunctions(M);
  makeAllocationsValues(M);
  return PreservedAnalyses::none();
}

} // namespace heddle::compiler
