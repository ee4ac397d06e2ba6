#include "pass/Apart.h"

#include "pass/Cuda.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

enum CopyKind : uint64_t { HostToDevice = 1, DeviceToHost = 2, DeviceToDevice = 3 };

// Nothing but buffers of the task, for certain.
bool isOfTask(const Traced &Memory, const Task &T) {
  return Memory.complete() && !Memory.Host &&
         all_of(Memory.Roots, [&](Allocation *Root) { return T.Roots.contains(Root); });
}

bool pointsIntoTask(Value *Pointer, const Task &T) {
  Traced Memory;
  tracePointer(Pointer, Memory);
  return isOfTask(Memory, T);
}

// A copy that returns when it is done, and whose direction is known.
bool isKnownCopy(const CallBase &Call, unsigned From, unsigned Kind, const Task &T) {
  const auto *Direction = dyn_cast<ConstantInt>(Call.getArgOperand(Kind));
  const uint64_t Value = Direction ? Direction->getZExtValue() : 0;
  if (Value < HostToDevice || Value > DeviceToDevice)
    return false;
  return (Value == DeviceToHost || pointsIntoTask(Call.getArgOperand(0), T)) &&
         (Value == HostToDevice || pointsIntoTask(Call.getArgOperand(From), T));
}

bool isKnownOperation(const CallBase &Call, const Task &T) {
  const Operation Op = operationOf(Call);
  const StringRef Name = calledFunction(Call)->getName();
  switch (Op) {
  case Operation::Push:
  case Operation::Stub:
    return true;
  case Operation::Alloc:
    return Name != MallocAsyncName;
  case Operation::Copy:
    return Name == "cudaMemcpy" && isKnownCopy(Call, 1, 3, T);
  case Operation::Copy2D:
    return Name == "cudaMemcpy2D" && isKnownCopy(Call, 2, 6, T);
  case Operation::Fill:
    return (Name == "cudaMemset" || Name == "cudaMemset2D") && pointsIntoTask(Call.getArgOperand(0), T);
  case Operation::Free:
    return Name == "cudaFree" && pointsIntoTask(Call.getArgOperand(0), T);
  default:
    return false;
  }
}

// The launch's word of heddle_task::pointers; 0 where one of its pointers may lead elsewhere.
uint64_t pointersOf(const Launch &L, const Task &T) {
  constexpr unsigned Most = 62;
  if (!L.Stub || !L.Kernel || !L.Memory.complete() || L.Push->arg_size() != 6 || L.Stub->arg_size() > Most ||
      !isa<ConstantPointerNull>(L.Push->getArgOperand(5)))
    return 0;
  const Function &Stub = *calledFunction(*L.Stub);
  uint64_t Pointers = uint64_t{1} << L.Stub->arg_size();
  for (unsigned I = 0; I < L.Stub->arg_size(); ++I) {
    Value *Argument = L.Stub->getArgOperand(I);
    if (!Argument->getType()->isPointerTy() && !isa<PtrToIntInst>(Argument))
      continue; // a number: that it is no address, the kernel's code must show
    Traced Memory;
    if (I < Stub.arg_size() && takesByReference(Stub, I))
      traceContents(Argument, Memory);
    else
      tracePointer(Argument, Memory);
    if (!isOfTask(Memory, T))
      return 0;
    Pointers |= uint64_t{1} << I;
  }
  return Pointers;
}

} // namespace

std::optional<SmallVector<uint64_t>> pointersApart(const Task &T, const Instruction &Probe, LoopInfo &Loops) {
  const Loop *Around = Loops.getLoopFor(Probe.getParent());
  // What is allocated at each turn anew would ask for memory again.
  const auto IsOnce = [&](Allocation *Root) { return Loops.getLoopFor(Root->getParent()) == Around; };
  if (!all_of(T.Roots, [&](Allocation *Root) { return IsOnce(Root) && isClosed(Root); }) ||
      !all_of(T.Operations, [&](CallBase *Call) { return isKnownOperation(*Call, T); }))
    return std::nullopt;
  SmallVector<uint64_t> Pointers;
  for (const Launch *L : T.Launches)
    Pointers.push_back(pointersOf(*L, T));
  if (is_contained(Pointers, 0u))
    return std::nullopt;
  return Pointers;
}

void insertEnterAndLeave(const Task &T, Value *Number) {
  for (CallBase *Call : T.Operations) {
    if (operationOf(*Call) == Operation::Push)
      continue; // waits for its stub
    Module &M = *Call->getModule();
    CallInst::Create(M.getFunction(EnterName), {Number}, "", Call->getIterator());
    const auto Leave = [&](BasicBlock::iterator Before) { CallInst::Create(M.getFunction(LeaveName), "", Before); };
    if (auto *Invoke = dyn_cast<InvokeInst>(Call)) {
      // Others that come this way have nothing to leave.
      Leave(Invoke->getNormalDest()->getFirstInsertionPt());
      Leave(Invoke->getUnwindDest()->getFirstInsertionPt());
    } else {
      Leave(std::next(Call->getIterator()));
    }
  }
}

} // namespace heddle::compiler
