#include "pass/Prepare.h"

#include "pass/Cuda.h"
#include "pass/Inlining.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

void markNoThrow(Module &M) {
  for (Function &F : M) {
    if (F.isDeclaration() && isRuntimeName(F.getName()))
      F.setDoesNotThrow();
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

// The calls of a function of the runtime with so many arguments, as far as they may be changed.
SmallVector<CallBase *> callsToChange(Function &Called, unsigned Arguments) {
  SmallVector<CallBase *> Calls;
  for (User *U : Called.users()) {
    auto *Call = dyn_cast<CallBase>(U);
    if (Call && calledFunction(*Call) == &Called && Call->arg_size() == Arguments &&
        !Call->getFunction()->hasFnAttribute(OwnAttribute) && !Call->getFunction()->hasOptNone())
      Calls.push_back(Call);
  }
  return Calls;
}

// cudaMalloc3D(&pitched, extent): the extent comes as the address of a copy, and the result has four words.
void makePitchedValue(CallBase *Call, Function *Value) {
  IRBuilder<> B(Call);
  llvm::Value *Pitched = Call->getArgOperand(0), *Extent = Call->getArgOperand(1);
  const auto Word = [&](llvm::Value *Struct, unsigned Number) {
    return B.CreateConstInBoundsGEP1_64(B.getInt8Ty(), Struct, 8 * Number);
  };
  SmallVector<llvm::Value *, 3> Sides;
  for (unsigned Side = 0; Side < 3; ++Side)
    Sides.push_back(B.CreateLoad(B.getInt64Ty(), Word(Extent, Side)));
  CallInst *Made = B.CreateCall(Value, Sides);
  B.CreateStore(B.CreateExtractValue(Made, 0, "device"), Pitched);
  B.CreateStore(B.CreateExtractValue(Made, 2, "pitch"), Word(Pitched, 1));
  B.CreateStore(Sides[0], Word(Pitched, 2));
  B.CreateStore(Sides[1], Word(Pitched, 3));
  Call->replaceAllUsesWith(B.CreateExtractValue(Made, 1, "error"));
  eraseCall(Call);
}

void makeAllocationsValues(Module &M) {
  for (const Maker &How : Makers) {
    Function *Malloc = M.getFunction(How.Name);
    Function *Value = M.getFunction(How.Becomes);
    if (!Malloc || !Value)
      continue;
    for (CallBase *Call : callsToChange(*Malloc, How.Arguments.back() + 1))
      makeValue(Call, How, Value);
  }
  if (Function *Malloc3D = M.getFunction("cudaMalloc3D"))
    for (CallBase *Call : callsToChange(*Malloc3D, 2))
      if (Call->isByValArgument(1))
        makePitchedValue(Call, M.getFunction(Malloc3DName));
}

// Device code, and objects without GPU work (nvcc's link stub among them), are left alone.
bool concerns(const Module &M) {
  const Triple Target(M.getTargetTriple());
  if (Target.isNVPTX() || Target.isAMDGPU() || M.getFunction(BeginName))
    return false;
  const auto IsUsed = [&](const char *Name) {
    const Function *F = M.getFunction(Name);
    return F && !F->use_empty();
  };
  return any_of(allocationNames(), IsUsed) || IsUsed("__cudaPushCallConfiguration");
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
