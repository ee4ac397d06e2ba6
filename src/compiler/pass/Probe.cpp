#include "pass/Probe.h"

#include "pass/Cuda.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

struct Half {
  Value *X, *Y;
};

// The two 32-bit halves of a word that holds x | y << 32, as far as each is known at the probe.
Half halves(Value *Packed, Symbols &At, IRBuilder<> &B) {
  using namespace PatternMatch;
  if (Value *Whole = At.at(Packed))
    return {B.CreateTrunc(Whole, B.getInt32Ty()), B.CreateTrunc(B.CreateLShr(Whole, 32), B.getInt32Ty())};
  // A part that is not known exactly may still be known about.
  Value *Low, *High;
  ConstantInt *Constant;
  if (match(Packed, m_c_Or(m_ZExt(m_Value(Low)), m_Shl(m_ZExt(m_Value(High)), m_SpecificInt(32)))) &&
      Low->getType()->isIntegerTy(32) && High->getType()->isIntegerTy(32))
    return {At.about(Low), At.about(High)};
  if (match(Packed, m_Or(m_ZExt(m_Value(Low)), m_ConstantInt(Constant))) && Low->getType()->isIntegerTy(32) &&
      (Constant->getZExtValue() & 0xffffffff) == 0)
    return {At.about(Low), B.getInt32(Constant->getZExtValue() >> 32)};
  if (Value *Whole = At.about(Packed))
    return {B.CreateTrunc(Whole, B.getInt32Ty()), B.CreateTrunc(B.CreateLShr(Whole, 32), B.getInt32Ty())};
  return {nullptr, nullptr};
}

bool readShape(const Launch &L, Symbols &At, IRBuilder<> &B, ProbeWords::Shape &Shape) {
  // __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, stream): a dim3 is an i64 and an i32.
  if (!L.Kernel || L.Push->arg_size() != 6)
    return false;
  Shape.From = &L;
  for (auto [Into, First] : {std::pair(Shape.Grid, 0u), std::pair(Shape.Block, 2u)}) {
    const Half Both = halves(L.Push->getArgOperand(First), At, B);
    Into[0] = Both.X;
    Into[1] = Both.Y;
    Into[2] = At.about(L.Push->getArgOperand(First + 1));
    if (!Into[0] || !Into[1] || !Into[2])
      return false;
  }
  Shape.SharedBytes = At.about(L.Push->getArgOperand(4));
  Shape.Stream = At.at(L.Push->getArgOperand(5));
  if (!Shape.Stream) // one that is made later; it changes nothing about what the launch needs
    Shape.Stream = ConstantPointerNull::get(PointerType::getUnqual(B.getContext()));
  return Shape.SharedBytes != nullptr;
}

// The size, or 0 where a condition on the way that is known at the probe says that the allocation is not reached.
Value *underConditions(Value *Bytes, BasicBlock *Block, Instruction *Probe, Symbols &At, DominatorTree &Dominators,
                       IRBuilder<> &B) {
  const BasicBlock *Stop = Probe->getParent();
  for (auto *Node = Dominators.getNode(Block); Node && Node->getBlock() != Stop; Node = Node->getIDom()) {
    BasicBlock *Here = Node->getBlock(), *Before = Here->getSinglePredecessor();
    auto *Branch = Before ? dyn_cast<BranchInst>(Before->getTerminator()) : nullptr;
    if (!Branch || !Branch->isConditional() || Branch->getSuccessor(0) == Branch->getSuccessor(1))
      continue;
    Value *Condition = At.at(Branch->getCondition());
    if (!Condition)
      continue;
    Value *None = B.getInt64(0);
    const bool Taken = Branch->getSuccessor(0) == Here;
    Bytes = B.CreateSelect(Condition, Taken ? Bytes : None, Taken ? None : Bytes);
  }
  return Bytes;
}

bool freedInSameLoop(const Task &T, Allocation *Root, LoopInfo &Loops) {
  Loop *L = Loops.getLoopFor(Root->getParent());
  return L && any_of(T.Operations, [&](CallBase *Call) {
           if (operationOf(*Call) != Operation::Free || !L->contains(Call))
             return false;
           Traced Freed;
           tracePointer(Call->getArgOperand(0), Freed);
           return Freed.Roots.contains(Root);
         });
}

class WordFinder {
public:
  WordFinder(const Task &T, Instruction *Probe, Symbols &At, DominatorTree &Dominators, LoopInfo &Loops)
      : T(T), Probe(Probe), At(At), Dominators(Dominators), Loops(Loops), B(Probe) {}

  ProbeWords find() {
    for (Allocation *Root : T.Roots)
      addBuffer(Root);
    for (const Launch *L : T.Launches) {
      ProbeWords::Shape Shape;
      B.SetInsertPoint(Probe);
      if (readShape(*L, At, B, Shape))
        Words.Launches.push_back(Shape);
      else
        Words.UnknownShapes.insert(L);
    }
    return std::move(Words);
  }

private:
  void addBuffer(Allocation *Root) {
    Value *Bytes = bytesOf(Root);
    Value *Count = freedInSameLoop(T, Root, Loops) ? B.getInt64(1) : At.turns(Root->getParent(), B);
    B.SetInsertPoint(Probe);
    if (!Bytes || !Count) {
      ++Words.UnknownSizes;
      return;
    }
    Bytes = underConditions(Bytes, Root->getParent(), Probe, At, Dominators, B);
    if (isa<ConstantInt>(Count) && joinExclusive(Root, Bytes))
      return;
    Words.Buffers.push_back({Bytes, Count});
    Members.push_back({Root});
  }

  // What the allocation asks for, or more; a pitched one in rows that are rounded up as heddle's runtime does.
  Value *bytesOf(Allocation *Root) {
    Value *Bytes = most(Root->getArgOperand(0));
    const StringRef Name = calledFunction(*Root)->getName();
    if (!Bytes || (Name != MallocPitchName && Name != Malloc3DName))
      return Bytes;
    B.SetInsertPoint(Probe);
    constexpr uint64_t Pitch = 512;
    Bytes = B.CreateAnd(B.CreateAdd(Bytes, B.getInt64(Pitch - 1)), B.getInt64(~(Pitch - 1)));
    for (unsigned Side = 1; Side < Root->arg_size(); ++Side) {
      Value *Rows = most(Root->getArgOperand(Side));
      if (!Rows)
        return nullptr;
      B.SetInsertPoint(Probe);
      Bytes = B.CreateMul(Bytes, Rows);
    }
    return Bytes;
  }

  Value *most(Value *Size) {
    Words.HasBounds |= !At.at(Size);
    return At.most(Size);
  }

  // Adds to an entry whose allocations never happen on one way with this one.
  bool joinExclusive(Allocation *Root, Value *Bytes) {
    for (size_t I = 0; I < Members.size(); ++I) {
      const bool Excludes = isa<ConstantInt>(Words.Buffers[I].Count) && all_of(Members[I], [&](Allocation *Other) {
                              return !reaches(Other, Root) && !reaches(Root, Other);
                            });
      if (!Excludes)
        continue;
      Words.Buffers[I].Bytes = B.CreateBinaryIntrinsic(Intrinsic::umax, Words.Buffers[I].Bytes, Bytes);
      Members[I].push_back(Root);
      return true;
    }
    return false;
  }

  // Without passing the probe again.
  bool reaches(Instruction *From, Instruction *To) {
    if (From->getParent() == To->getParent())
      return true;
    SmallPtrSet<BasicBlock *, 1> Stop{Probe->getParent()};
    if (From->getParent() != Probe->getParent())
      return isPotentiallyReachable(From, To, &Stop, &Dominators, &Loops);
    return any_of(successors(From->getParent()), [&](BasicBlock *Next) {
      return isPotentiallyReachable(&Next->front(), To, &Stop, &Dominators, &Loops);
    });
  }

  const Task &T;
  Instruction *Probe;
  Symbols &At;
  DominatorTree &Dominators;
  LoopInfo &Loops;
  IRBuilder<> B;
  ProbeWords Words;
  SmallVector<SmallVector<Allocation *, 2>> Members; // of each buffer
};

// heddle_task::pointers: a constant, or null.
Constant *pointerWords(Module &M, ArrayRef<uint64_t> Pointers) {
  if (Pointers.empty())
    return ConstantPointerNull::get(PointerType::getUnqual(M.getContext()));
  Constant *Words = ConstantDataArray::get(M.getContext(), Pointers);
  return new GlobalVariable(M, Words->getType(), true, GlobalValue::PrivateLinkage, Words, "heddle.pointers");
}

AllocaInst *variable(Type *T, Function &F, const Twine &Name) {
  return new AllocaInst(T, 0, Name, F.getEntryBlock().getFirstInsertionPt());
}

} // namespace

Instruction *probePoint(const Task &T, DominatorTree &Dominators, LoopInfo &Loops) {
  BasicBlock *Block = nullptr;
  for (CallBase *Call : T.Operations)
    Block = Block ? Dominators.findNearestCommonDominator(Block, Call->getParent()) : Call->getParent();
  const auto HoldsAll = [&](const Loop &L) {
    return all_of(T.Operations, [&](CallBase *Call) { return L.contains(Call); });
  };
  for (Loop *L = Loops.getLoopFor(Block); L && !HoldsAll(*L); L = L->getParentLoop())
    Block = Dominators.getNode(L->getHeader())->getIDom()->getBlock();
  for (Instruction &I : *Block) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (Call && T.Operations.contains(Call))
      return &I;
  }
  return Block->getTerminator();
}

ProbeWords findWords(const Task &T, Instruction *Probe, Symbols &At, DominatorTree &Dominators, LoopInfo &Loops) {
  return WordFinder(T, Probe, At, Dominators, Loops).find();
}

Value *insertBegin(const ProbeWords &Words, ArrayRef<uint64_t> Pointers, StringRef Name, Instruction *Probe) {
  Function &F = *Probe->getFunction();
  Module &M = *F.getParent();
  IRBuilder<> B(Probe);
  Type *I32 = B.getInt32Ty(), *I64 = B.getInt64Ty(), *Pointer = B.getPtrTy();
  // As include/heddle/task.h has them.
  auto *BufferType = StructType::get(M.getContext(), {I64, I64});
  auto *Three = ArrayType::get(I32, 3);
  auto *LaunchType = StructType::get(M.getContext(), {Pointer, Three, Three, I64, Pointer});
  auto *TaskType = StructType::get(M.getContext(), {I32, I32, Pointer, I64, Pointer, I64, Pointer, Pointer});

  auto *Buffers = variable(ArrayType::get(BufferType, Words.Buffers.size()), F, "heddle.buffers");
  auto *Launches = variable(ArrayType::get(LaunchType, Words.Launches.size()), F, "heddle.launches");
  auto *Announced = variable(TaskType, F, "heddle.task");
  const auto Set = [&](Value *What, Type *T, Value *Base, ArrayRef<unsigned> Path) {
    SmallVector<Value *> Indices{B.getInt32(0)};
    for (unsigned Index : Path)
      Indices.push_back(B.getInt32(Index));
    B.CreateStore(What, B.CreateInBoundsGEP(T, Base, Indices));
  };
  for (unsigned I = 0; I < Words.Buffers.size(); ++I) {
    Set(B.CreateFreeze(Words.Buffers[I].Bytes), Buffers->getAllocatedType(), Buffers, {I, 0});
    Set(B.CreateFreeze(Words.Buffers[I].Count), Buffers->getAllocatedType(), Buffers, {I, 1});
  }
  for (unsigned I = 0; I < Words.Launches.size(); ++I) {
    const ProbeWords::Shape &Shape = Words.Launches[I];
    Type *T = Launches->getAllocatedType();
    Set(Shape.From->Kernel, T, Launches, {I, 0});
    for (unsigned Axis = 0; Axis < 3; ++Axis) {
      Set(B.CreateFreeze(Shape.Grid[Axis]), T, Launches, {I, 1, Axis});
      Set(B.CreateFreeze(Shape.Block[Axis]), T, Launches, {I, 2, Axis});
    }
    Set(B.CreateFreeze(Shape.SharedBytes), T, Launches, {I, 3});
    Set(B.CreateFreeze(Shape.Stream), T, Launches, {I, 4});
  }
  const uint64_t Size = M.getDataLayout().getTypeAllocSize(TaskType);
  Set(B.getInt32(Size), TaskType, Announced, {0});
  constexpr uint32_t ApartFlag = 1;
  Set(B.getInt32(Pointers.empty() ? 0 : ApartFlag), TaskType, Announced, {1});
  Set(B.CreateGlobalString(Name, "heddle.name", 0, &M), TaskType, Announced, {2});
  Set(B.getInt64(Words.Buffers.size()), TaskType, Announced, {3});
  Set(Buffers, TaskType, Announced, {4});
  Set(B.getInt64(Words.Launches.size()), TaskType, Announced, {5});
  Set(Launches, TaskType, Announced, {6});
  Set(pointerWords(M, Pointers), TaskType, Announced, {7});
  return B.CreateCall(M.getFunction(BeginName), {Announced}, "heddle.number");
}

} // namespace heddle::compiler
