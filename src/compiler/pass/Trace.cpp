#include "pass/Trace.h"

#include "pass/Cuda.h"
#include "pass/Inlining.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include <optional>
#include <set>

using namespace llvm;

namespace heddle::compiler {
namespace {

// A part of a local variable: bytes [Offset, Offset + Bytes); all of it where the offset is not known.
struct Part {
  std::optional<int64_t> Offset;
  uint64_t Bytes = 8;

  bool overlaps(const Part &Other) const {
    return !Offset || !Other.Offset ||
           (*Offset < *Other.Offset + static_cast<int64_t>(Other.Bytes) &&
            *Other.Offset < *Offset + static_cast<int64_t>(Bytes));
  }
};

// What is stored into a part of a local variable, if that can be told.
struct Slot {
  struct Source {
    Value *Address;
    Part From; // of what `Address` points to
  };
  SmallVector<Value *, 4> Stored;    // values
  SmallVector<Source, 2> CopiedIn;   // what is copied into it
  SmallVector<Value *, 4> Loaded;    // values read from it
  SmallVector<Value *, 2> CopiedTo;  // addresses that its contents are copied to
  SmallVector<CallBase *, 2> ReadBy; // calls that get its contents and leave it as it is
  std::string Escapes;               // who else may write to it
  bool Host = false;                 // an address of host memory is put there
};

class SlotReader {
public:
  SlotReader(Value *Variable, Part Wanted) : Wanted(Wanted) {
    push(Variable, 0);
    while (!Addresses.empty()) {
      const auto [Address, Offset] = Addresses.pop_back_val();
      for (const Use &U : Address->uses())
        lookAt(U, Offset);
    }
  }

  Slot Result;

private:
  using Offset = std::optional<int64_t>;

  // Each address once; one that is reached with two offsets has none.
  void push(Value *Address, Offset At) {
    const auto [Found, New] = Seen.try_emplace(Address, At);
    if (!New && Found->second == At)
      return;
    if (!New && !Found->second)
      return;
    Found->second = New ? At : Offset();
    Addresses.emplace_back(Address, Found->second);
  }

  static uint64_t sizeOf(const Instruction &I, Type *T) {
    return I.getModule()->getDataLayout().getTypeStoreSize(T).getFixedValue();
  }

  void lookAt(const Use &U, Offset At) {
    auto *I = cast<Instruction>(U.getUser());
    if (auto *Store = dyn_cast<StoreInst>(I)) {
      if (U.getOperandNo() != StoreInst::getPointerOperandIndex())
        Result.Escapes = "its address is stored";
      else if (Wanted.overlaps({At, sizeOf(*I, Store->getValueOperand()->getType())}))
        Result.Stored.push_back(Store->getValueOperand());
    } else if (auto *Step = dyn_cast<GetElementPtrInst>(I)) {
      APInt Distance(64, 0);
      const bool Constant = Step->accumulateConstantOffset(I->getModule()->getDataLayout(), Distance);
      push(I, At && Constant ? Offset(*At + Distance.getSExtValue()) : Offset());
    } else if (isa<PHINode>(I) || isa<SelectInst>(I)) {
      push(I, At);
    } else if (auto *Copy = dyn_cast<MemTransferInst>(I)) {
      copy(*Copy, U.getOperandNo() == 0, At);
    } else if (auto *Call = dyn_cast<CallBase>(I)) {
      call(*Call, U, At);
    } else if (auto *Load = dyn_cast<LoadInst>(I)) {
      if (Wanted.overlaps({At, sizeOf(*I, Load->getType())}))
        Result.Loaded.push_back(I);
    } else if (!isa<ICmpInst>(I)) {
      Result.Escapes = "its address is used";
    }
  }

  void copy(MemTransferInst &Copy, bool Into, Offset At) {
    const auto *Length = dyn_cast<ConstantInt>(Copy.getLength());
    const uint64_t Bytes = Length ? Length->getZExtValue() : 0;
    if (!Wanted.overlaps({Length ? At : Offset(), Bytes}))
      return;
    if (!Into)
      Result.CopiedTo.push_back(Copy.getRawDest());
    else if (At && Wanted.Offset && Length)
      Result.CopiedIn.push_back({Copy.getRawSource(), {*Wanted.Offset - *At, Wanted.Bytes}});
    else
      Result.CopiedIn.push_back({Copy.getRawSource(), {}});
  }

  void call(CallBase &Call, const Use &U, Offset At) {
    if (Call.isLifetimeStartOrEnd() || isa<MemSetInst>(Call))
      return;
    if (passesByValue(Call, U)) {
      Result.ReadBy.push_back(&Call);
      return;
    }
    // A reference, and `this`, reach what they refer to: that much and no more.
    if (Call.isArgOperand(&U)) {
      const unsigned Number = Call.getArgOperandNo(&U);
      const uint64_t Reach = Call.getParamDereferenceableBytes(Number);
      if (Reach > 0 && At && !Wanted.overlaps({At, Reach}))
        return;
    }
    const Function *F = calledFunction(Call);
    if (F && givesHostMemory(*F) && Call.getArgOperandNo(&U) == 0) {
      Result.Host = true; // no device pointer comes in
      return;
    }
    Result.Escapes = (F ? demangle(F->getName()) : "a pointer to a function") + " gets its address";
  }

  static bool passesByValue(const CallBase &Call, const Use &U) {
    if (!Call.isArgOperand(&U))
      return false;
    const unsigned Number = Call.getArgOperandNo(&U);
    if (Call.isByValArgument(Number) || (Call.onlyReadsMemory(Number) && Call.doesNotCapture(Number)))
      return true;
    // A stub only hands the address on to the launch, which copies what is there.
    const Function *F = calledFunction(Call);
    return operationOf(Call) == Operation::Stub && Number < F->arg_size() && takesByReference(*F, Number);
  }

  const Part Wanted;
  DenseMap<Value *, Offset> Seen;
  SmallVector<std::pair<Value *, Offset>> Addresses;
};

Slot readSlot(Value *Variable, Part Wanted = {}) { return SlotReader(Variable, Wanted).Result; }

std::string nameOf(const Value &V) { return V.hasName() ? ("'" + V.getName() + "'").str() : std::string("a value"); }

class Tracer {
public:
  explicit Tracer(Traced &Result) : Result(Result) {}

  void value(Value *V) {
    V = V->stripPointerCasts();
    if (!SeenValues.insert(V).second)
      return;
    if (isa<ConstantPointerNull>(V) || isa<UndefValue>(V))
      return;
    if (auto *Offset = dyn_cast<GEPOperator>(V))
      return value(Offset->getPointerOperand());
    if (auto *Phi = dyn_cast<PHINode>(V)) {
      for (Value *Incoming : Phi->incoming_values())
        value(Incoming);
      return;
    }
    if (auto *Select = dyn_cast<SelectInst>(V)) {
      value(Select->getTrueValue());
      return value(Select->getFalseValue());
    }
    if (auto *Freeze = dyn_cast<FreezeInst>(V))
      return value(Freeze->getOperand(0));
    if (auto *Cast = dyn_cast<IntToPtrInst>(V))
      return value(Cast->getOperand(0));
    if (auto *Cast = dyn_cast<PtrToIntInst>(V))
      return value(Cast->getOperand(0));
    if (auto *Insert = dyn_cast<InsertElementInst>(V)) {
      value(Insert->getOperand(0));
      return value(Insert->getOperand(1));
    }
    if (auto *Extract = dyn_cast<ExtractValueInst>(V))
      return made(Extract->getAggregateOperand());
    if (auto *Load = dyn_cast<LoadInst>(V))
      return contents(Load->getPointerOperand(), {0, 8});
    other(V);
  }

  // What lies in memory: in the part of what the address points to.
  void contents(Value *Address, Part Wanted) {
    Value *Object = getUnderlyingObject(Address, 0);
    if (auto *Phi = dyn_cast<PHINode>(Object); Phi && SeenObjects.insert({Phi, -1}).second) {
      for (Value *Incoming : Phi->incoming_values())
        contents(Incoming, {});
      return;
    }
    if (auto *I = dyn_cast<AllocaInst>(Object)) {
      APInt Distance(64, 0);
      const Value *Base = Address->stripAndAccumulateConstantOffsets(I->getModule()->getDataLayout(), Distance, true);
      Wanted.Offset =
          Base == Object && Wanted.Offset ? std::optional(*Wanted.Offset + Distance.getSExtValue()) : std::nullopt;
    }
    if (!SeenObjects.insert({Object, Wanted.Offset.value_or(-1)}).second)
      return;
    if (auto *Constant = dyn_cast<GlobalVariable>(Object); Constant && Constant->isConstant()) {
      Result.Host = true; // holds no device pointer
      return;
    }
    if (auto *Global = dyn_cast<GlobalVariable>(Object))
      return Result.giveUp("the pointer is read from the global variable '" + Global->getName() + "'");
    const auto *A = dyn_cast<Argument>(Object);
    if (A && !A->hasByValAttr())
      return Result.giveUp("the pointer is read through parameter " + nameOf(*A) + " of the function");
    if (!isa<AllocaInst>(Object))
      return Result.giveUp("the pointer is read from the heap or from memory that is not known");
    local(Object, Wanted);
  }

private:
  // A pointer together with its error, as an allocation gives them. Allocations on several branches may meet so.
  void made(Value *Both) {
    if (isa<UndefValue>(Both) || !SeenValues.insert(Both).second)
      return;
    auto *Call = dyn_cast<CallBase>(Both);
    if (Call && operationOf(*Call) == Operation::Alloc) {
      Result.Roots.insert(Call);
      return;
    }
    if (auto *Select = dyn_cast<SelectInst>(Both)) {
      made(Select->getTrueValue());
      return made(Select->getFalseValue());
    }
    auto *Phi = dyn_cast<PHINode>(Both);
    if (!Phi)
      return other(Both);
    for (Value *Incoming : Phi->incoming_values())
      made(Incoming);
  }

  void local(Value *Variable, Part Wanted) {
    const Slot S = readSlot(Variable, Wanted);
    if (!S.Escapes.empty())
      return Result.giveUp("the pointer is read from a variable that may change: " + S.Escapes);
    Result.Host |= S.Host;
    for (Value *Stored : S.Stored) {
      if (mayHoldPointer(Stored))
        value(Stored);
    }
    for (const Slot::Source &Source : S.CopiedIn)
      contents(Source.Address, Source.From);
  }

  // Numbers are no pointers, but words that were pointers are.
  static bool mayHoldPointer(const Value *V) {
    Type *T = V->getType();
    if (T->isPtrOrPtrVectorTy())
      return true;
    if (isa<PtrToIntOperator>(V))
      return true;
    const auto *Load = dyn_cast<LoadInst>(V);
    return Load && T->isIntegerTy(64) && isa<AllocaInst>(getUnderlyingObject(Load->getPointerOperand()));
  }

  void other(Value *V) {
    if (auto *A = dyn_cast<Argument>(V)) {
      const StringRef Why = reasonNotInlined(*A->getParent());
      return Result.giveUp("the pointer is parameter " + nameOf(*A) + " of the function, which was not inlined" +
                           (Why.empty() ? "" : ": ") + Why);
    }
    if (auto *Call = dyn_cast<CallBase>(V)) {
      const Function *F = calledFunction(*Call);
      return Result.giveUp("the pointer comes from " + (F ? F->getName() : "an indirect call"));
    }
    if (isa<GlobalValue>(V) || isa<AllocaInst>(V) || isa<ConstantInt>(V)) {
      Result.Host = true;
      return;
    }
    Result.giveUp("the pointer is computed in a way that is not followed");
  }

  Traced &Result;
  SmallPtrSet<Value *, 16> SeenValues;
  std::set<std::pair<Value *, int64_t>> SeenObjects;
};

// Follows the pointer's uses, and those of its copies in local variables.
class UseFollower {
public:
  // False as soon as one use is not known.
  bool follow(Value *Pointer) {
    Work.push_back(Pointer);
    while (!Work.empty()) {
      Value *V = Work.pop_back_val();
      if (!Seen.insert(V).second)
        continue;
      for (const Use &U : V->uses())
        if (!isKnown(U))
          return false;
    }
    return true;
  }

private:
  bool isKnown(const Use &U) {
    auto *I = cast<Instruction>(U.getUser());
    if (isa<PHINode>(I) || isa<SelectInst>(I) || isa<GetElementPtrInst>(I) || isa<FreezeInst>(I)) {
      Work.push_back(I);
      return true;
    }
    if (auto *Store = dyn_cast<StoreInst>(I))
      return U.getOperandNo() != StoreInst::getPointerOperandIndex() && staysLocal(Store->getPointerOperand());
    if (auto *Call = dyn_cast<CallBase>(I)) {
      const Operation Op = operationOf(*Call);
      return Op == Operation::Stub ||
             (Call->isArgOperand(&U) && is_contained(memoryArguments(Op), Call->getArgOperandNo(&U)));
    }
    return isa<ICmpInst>(I);
  }

  bool staysLocal(Value *Address) {
    auto *Variable = dyn_cast<AllocaInst>(getUnderlyingObject(Address, 0));
    if (!Variable)
      return false;
    if (!Seen.insert(Variable).second)
      return true;
    const Slot S = readSlot(Variable);
    Work.append(S.Loaded.begin(), S.Loaded.end());
    // A struct that another function gets by value takes the pointer along.
    const auto IsOperation = [](CallBase *Call) {
      return operationOf(*Call) == Operation::Stub || structArgument(operationOf(*Call)) >= 0;
    };
    return S.Escapes.empty() && all_of(S.ReadBy, IsOperation) &&
           all_of(S.CopiedTo, [&](Value *To) { return staysLocal(To); });
  }

  SmallVector<Value *> Work;
  SmallPtrSet<Value *, 16> Seen;
};

} // namespace

void tracePointer(Value *Pointer, Traced &Result) { Tracer(Result).value(Pointer); }

void traceContents(Value *Address, Traced &Result) { Tracer(Result).contents(Address, {}); }

bool isClosed(Allocation *Root) {
  for (User *U : Root->users()) {
    auto *Extract = dyn_cast<ExtractValueInst>(U);
    if (!Extract)
      return false;
    if (Extract->getIndices().front() == 0 && !UseFollower().follow(Extract))
      return false;
  }
  return true;
}

bool isUsedDirectly(Allocation *Root) {
  SmallVector<User *> Work(Root->users());
  while (!Work.empty()) {
    User *U = Work.pop_back_val();
    if (isa<PHINode>(U) || isa<SelectInst>(U) || isa<StoreInst>(U))
      return false;
    if (isa<ExtractValueInst>(U) && U->getType()->isPointerTy())
      Work.append(U->user_begin(), U->user_end());
    if (isa<GetElementPtrInst>(U))
      Work.append(U->user_begin(), U->user_end());
  }
  return true;
}

} // namespace heddle::compiler
