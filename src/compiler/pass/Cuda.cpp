#include "pass/Cuda.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include <cctype>

using namespace llvm;

namespace heddle::compiler {

Function *calledFunction(const CallBase &Call) {
  return dyn_cast<Function>(Call.getCalledOperand()->stripPointerCasts());
}

ArrayRef<const char *> allocationNames() {
  static constexpr const char *Names[] = {"cudaMalloc", "cudaMallocAsync", "cudaMallocPitch", "cudaMalloc3D"};
  return Names;
}

bool isRuntimeName(StringRef Name) {
  Name.consume_front("__");
  return Name.consume_front("cuda") && !Name.empty() && std::isupper(static_cast<unsigned char>(Name.front()));
}

Operation operationOf(const CallBase &Call) {
  const Function *F = calledFunction(Call);
  if (!F)
    return Operation::None;
  const auto Known =
      StringSwitch<Operation>(F->getName())
          .Cases("heddle_malloc", "heddle_malloc_async", "heddle_malloc_pitch", "heddle_malloc_3d", Operation::Alloc)
          .Cases("cudaMemcpy", "cudaMemcpyAsync", Operation::Copy)
          .Cases("cudaMemcpy2D", "cudaMemcpy2DAsync", Operation::Copy2D)
          .Cases("cudaMemset", "cudaMemsetAsync", "cudaMemset2D", "cudaMemset2DAsync", Operation::Fill)
          .Cases("cudaMemset3D", "cudaMemset3DAsync", Operation::Fill3D)
          .Cases("cudaFree", "cudaFreeAsync", Operation::Free)
          .Case("__cudaPushCallConfiguration", Operation::Push)
          .Cases("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "__cudaLaunchKernel",
                 Operation::Launch)
          .Default(isRuntimeName(F->getName()) ? Operation::OtherApi : Operation::None);
  if (Known != Operation::None)
    return Known;
  return F->hasFnAttribute(StubAttribute) ? Operation::Stub : Operation::None;
}

ArrayRef<unsigned> memoryArguments(Operation Op) {
  static constexpr unsigned First[] = {0}, Both[] = {0, 1}, Pitched[] = {0, 2};
  switch (Op) {
  case Operation::Copy:
    return Both;
  case Operation::Copy2D:
    return Pitched;
  case Operation::Fill:
  case Operation::Free:
    return First;
  default:
    return {};
  }
}

int structArgument(Operation Op) { return Op == Operation::Fill3D ? 0 : -1; }

bool givesHostMemory(const Function &F) {
  return StringSwitch<bool>(F.getName())
      .Cases("cudaMallocHost", "cudaHostAlloc", "cudaMallocManaged", "cudaHostGetDevicePointer", true)
      .Default(false);
}

namespace {

const CallBase *callOf(const Function &F, StringRef Name) {
  for (const Instruction &I : instructions(F)) {
    const auto *Call = dyn_cast<CallBase>(&I);
    const Function *Called = Call ? calledFunction(*Call) : nullptr;
    if (Called && Called->getName() == Name)
      return Call;
  }
  return nullptr;
}

Function *functionOf(Value *V) { return dyn_cast<Function>(V->stripPointerCasts()); }

} // namespace

void markKernelStubs(Module &M) {
  const Function *Pop = M.getFunction("__cudaPopCallConfiguration");
  if (!Pop)
    return;
  for (const User *U : Pop->users()) {
    const auto *Call = dyn_cast<CallBase>(U);
    if (!Call || calledFunction(*Call) != Pop)
      continue;
    // The launch is known by the call of its stub: that call must stay.
    Function *Stub = const_cast<Function *>(Call->getFunction());
    Stub->addFnAttr(StubAttribute);
    Stub->removeFnAttr(Attribute::AlwaysInline);
    Stub->addFnAttr(Attribute::NoInline);
  }
}

Function *kernelOf(const Function &Stub) {
  // nvcc's stubs call cudaLaunchKernel with __NV_LEGACY_LAUNCH, and ask __cudaGetKernel for a handle without it.
  if (const CallBase *Launch = callOf(Stub, "cudaLaunchKernel"))
    return functionOf(Launch->getArgOperand(0));
  if (const CallBase *Get = callOf(Stub, "__cudaGetKernel"))
    return functionOf(Get->getArgOperand(1));
  return nullptr;
}

bool takesByReference(const Function &Stub, unsigned Parameter) {
  const Argument *A = Stub.getArg(Parameter);
  if (A->hasByValAttr())
    return true;
  const CallBase *Launch = callOf(Stub, "cudaLaunchKernel");
  if (!Launch)
    Launch = callOf(Stub, "__cudaLaunchKernel");
  if (!Launch)
    return false;
  const Value *Arguments = getUnderlyingObject(Launch->getArgOperand(Launch->arg_size() - 3));
  for (const User *U : A->users()) {
    const auto *Store = dyn_cast<StoreInst>(U);
    if (Store && Store->getValueOperand() == A && getUnderlyingObject(Store->getPointerOperand()) == Arguments)
      return true;
  }
  return false;
}

} // namespace heddle::compiler
