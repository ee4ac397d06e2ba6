#include "pass/Tasks.h"

#include "pass/Cuda.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

// The stub that the push belongs to: the first one behind it, before another push.
CallBase *stubBehind(CallBase *Push) {
  constexpr unsigned Farthest = 16; // blocks: nvcc's check, and the copies of by-value parameters
  SmallVector<BasicBlock *> Queue{Push->getParent()};
  SmallPtrSet<BasicBlock *, 16> Seen;
  for (unsigned I = 0; I < Queue.size() && I < Farthest; ++I) {
    auto At = I == 0 ? std::next(Push->getIterator()) : Queue[I]->begin();
    bool Another = false;
    for (; At != Queue[I]->end() && !Another; ++At) {
      auto *Call = dyn_cast<CallBase>(&*At);
      const Operation Op = Call ? operationOf(*Call) : Operation::None;
      if (Op == Operation::Stub)
        return Call;
      Another = Op == Operation::Push;
    }
    if (Another)
      continue;
    for (BasicBlock *Next : successors(Queue[I]))
      if (Seen.insert(Next).second)
        Queue.push_back(Next);
  }
  return nullptr;
}

Launch readLaunch(CallBase *Push) {
  Launch L;
  L.Push = Push;
  L.Stub = stubBehind(Push);
  if (!L.Stub) {
    L.Memory.giveUp("the kernel's stub was not found behind its configuration");
    return L;
  }
  const Function &Stub = *calledFunction(*L.Stub);
  L.Kernel = kernelOf(Stub);
  for (unsigned I = 0; I < L.Stub->arg_size(); ++I) {
    Value *Argument = L.Stub->getArgOperand(I);
    if (!Argument->getType()->isPointerTy() && !isa<PtrToIntInst>(Argument))
      continue;
    if (I < Stub.arg_size() && takesByReference(Stub, I))
      traceContents(Argument, L.Memory);
    else
      tracePointer(Argument, L.Memory);
  }
  return L;
}

Launch directLaunch(CallBase *Call) {
  Launch L;
  L.Push = Call;
  L.Memory.giveUp(calledFunction(*Call)->getName() + " is called by the program itself");
  return L;
}

// Copies, fills and frees, with the allocations that they may touch.
std::vector<std::pair<CallBase *, Allocations>> findMemoryOperations(Function &F) {
  std::vector<std::pair<CallBase *, Allocations>> Found;
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallBase>(&I);
    Traced Memory;
    for (unsigned Number : Call ? memoryArguments(operationOf(*Call)) : ArrayRef<unsigned>())
      tracePointer(Call->getArgOperand(Number), Memory);
    if (const int Struct = Call ? structArgument(operationOf(*Call)) : -1; Struct >= 0)
      traceContents(Call->getArgOperand(Struct), Memory);
    if (!Memory.Roots.empty())
      Found.emplace_back(Call, Memory.Roots);
  }
  return Found;
}

} // namespace

std::string Launch::kernelName() const {
  if (!Kernel)
    return "a kernel";
  std::string Name = demangle(Kernel->getName());
  return Name.substr(0, Name.find('('));
}

GpuWork findTasks(Function &F) {
  GpuWork Work;
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallBase>(&I);
    const Operation Op = Call ? operationOf(*Call) : Operation::None;
    if (Op == Operation::Push)
      Work.Launches.push_back(readLaunch(Call));
    else if (Op == Operation::Launch)
      Work.Launches.push_back(directLaunch(Call));
  }

  const auto Memory = findMemoryOperations(F);
  EquivalenceClasses<CallBase *> Shared;
  for (const Launch &L : Work.Launches) {
    for (Allocation *Root : L.Memory.Roots)
      Shared.unionSets(L.Push, Root);
  }
  // A copy from one buffer to another keeps them together as a launch would.
  for (const auto &[Call, Roots] : Memory) {
    for (Allocation *Root : Roots)
      Shared.unionSets(Roots.front(), Root);
  }
  // In the order of the function, so that the outcome does not depend on addresses.
  DenseMap<CallBase *, size_t> TaskOf;
  for (const Launch &L : Work.Launches) {
    if (L.Memory.Roots.empty())
      continue;
    const auto [Found, New] = TaskOf.try_emplace(Shared.getLeaderValue(L.Push), Work.Tasks.size());
    if (New)
      Work.Tasks.emplace_back();
    Task &T = Work.Tasks[Found->second];
    T.Launches.push_back(&L);
    T.Operations.insert(L.Push);
    T.Operations.insert(L.Stub);
    T.Roots.insert(L.Memory.Roots.begin(), L.Memory.Roots.end());
    T.Operations.insert(L.Memory.Roots.begin(), L.Memory.Roots.end());
  }
  for (const auto &[Call, Roots] : Memory) {
    for (Task &T : Work.Tasks)
      if (any_of(Roots, [&](Allocation *Root) { return T.Roots.contains(Root); }))
        T.Operations.insert(Call);
  }
  return Work;
}

} // namespace heddle::compiler
