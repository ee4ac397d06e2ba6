#include "pass/Build.h"

#include "pass/Apart.h"
#include "pass/Cuda.h"
#include "pass/EagerFree.h"
#include "pass/Exits.h"
#include "pass/Inlining.h"
#include "pass/Probe.h"
#include "pass/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

std::string count(size_t Number, const char *Thing) {
  return std::to_string(Number) + " " + Thing + (Number == 1 ? "" : "s");
}

Verdict verdictOf(const Launch &L, const ProbeWords &Words, unsigned Early, const Instruction &Probe, bool Apart) {
  SmallVector<std::string> Missing;
  if (!L.Memory.complete())
    Missing.push_back(L.Memory.Unknown);
  if (Words.UnknownSizes > 0)
    Missing.push_back(count(Words.UnknownSizes, "size") + " not known at the probe");
  if (Words.UnknownShapes.contains(&L))
    Missing.push_back("its grid is not known at the probe");
  if (!Missing.empty())
    return {Verdict::Kind::Partly, join(Missing, "; ")};
  std::string Text = count(Words.Buffers.size(), "buffer") + " announced at " + placeOf(Probe);
  if (Early > 0)
    Text += ", " + count(Early, "early free");
  if (Apart)
    Text += ", may run apart";
  return {Verdict::Kind::Bound, Text};
}

// The number where an end stands: the probe's own, or, where other ways lead too, a variable that is 0 on those.
class TaskNumber {
public:
  explicit TaskNumber(Instruction *Begin) : Begin(Begin) {}

  Value *at(Instruction *Before, bool Dominated) {
    if (Dominated)
      return Begin;
    if (!Variable)
      makeVariable();
    return new LoadInst(Begin->getType(), Variable, "heddle.number", Before->getIterator());
  }

private:
  void makeVariable() {
    auto Top = Begin->getFunction()->getEntryBlock().getFirstInsertionPt();
    Variable = new AllocaInst(Begin->getType(), 0, "heddle.open", Top);
    new StoreInst(ConstantInt::get(Begin->getType(), 0), Variable, Top);
    new StoreInst(Begin, Variable, std::next(Begin->getIterator()));
  }

  Instruction *Begin;
  AllocaInst *Variable = nullptr;
};

// Calls through which an exception may leave the task, made to pass a landing pad of our own.
void catchExceptions(Instruction *Begin, const Task &T, DominatorTree &Dominators) {
  Function &F = *Begin->getFunction();
  if (!F.hasPersonalityFn())
    return;
  SmallPtrSet<Instruction *, 16> Operations(T.Operations.begin(), T.Operations.end());
  SmallPtrSet<BasicBlock *, 16> Inside; // blocks between the probe and the last operation
  SmallVector<BasicBlock *> Work;
  for (CallBase *Call : T.Operations)
    Work.push_back(Call->getParent());
  while (!Work.empty()) {
    BasicBlock *Block = Work.pop_back_val();
    if (!Inside.insert(Block).second || Block == Begin->getParent())
      continue;
    Work.append(pred_begin(Block), pred_end(Block));
  }
  SmallVector<CallInst *> Throwing;
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallInst>(&I);
    if (Call && Inside.contains(Call->getParent()) && Call->mayThrow() && !Call->isInlineAsm() &&
        !Call->isMustTailCall() && Dominators.dominates(Begin, Call))
      Throwing.push_back(Call);
  }
  if (Throwing.empty())
    return;
  LLVMContext &C = F.getContext();
  BasicBlock *Pad = BasicBlock::Create(C, "heddle.unwind", &F);
  IRBuilder<> B(Pad);
  auto *Landed = B.CreateLandingPad(StructType::get(C, {B.getPtrTy(), B.getInt32Ty()}), 0);
  Landed->setCleanup(true);
  B.CreateCall(F.getParent()->getFunction(EndName), {Begin});
  B.CreateResume(Landed);
  DomTreeUpdater Updater(Dominators, DomTreeUpdater::UpdateStrategy::Eager);
  for (CallInst *Call : Throwing)
    changeToInvokeAndSplitBasicBlock(Call, Pad, &Updater);
}

// Whether every buffer that the probe announced was allocated when the program comes to `Here`, so that nothing is left
// over: none was under a condition, none in a loop that may turn less often than it seemed.
bool allTaken(const Task &T, const Instruction &Begin, const Instruction &Here, DominatorTree &Dominators,
              LoopInfo &Loops) {
  return all_of(T.Roots, [&](Allocation *Root) {
    return Dominators.dominates(Root, &Here) &&
           Loops.getLoopFor(Root->getParent()) == Loops.getLoopFor(Begin.getParent());
  });
}

class FunctionBuilder {
public:
  FunctionBuilder(Function &F, FunctionAnalysisManager &FAM) : F(F), FAM(FAM) {}

  bool build() {
    const GpuWork Work = findTasks(F);
    if (Work.Launches.empty())
      return false;
    auto &Remarks = FAM.getResult<OptimizationRemarkEmitterAnalysis>(F);
    const auto Apart = findTasksApart(Work);
    for (const Task &T : Work.Tasks)
      buildTask(T, Apart.lookup(&T), Remarks);
    for (const Launch &L : Work.Launches) {
      if (L.Memory.Roots.empty())
        report(L, withoutTask(L), Remarks);
    }
    return !Work.Tasks.empty();
  }

private:
  Verdict withoutTask(const Launch &L) const {
    if (F.hasOptNone())
      return {Verdict::Kind::Lazy, "the host code is compiled without optimisation (-O0)"};
    if (L.Memory.complete())
      return {Verdict::Kind::Lazy, "it uses no buffer that this function allocates"};
    return {Verdict::Kind::Lazy, L.Memory.Unknown};
  }

  // By task, a word for each launch; none where there is only one such task, which has none to run beside.
  DenseMap<const Task *, SmallVector<uint64_t>> findTasksApart(const GpuWork &Work) {
    auto &Dominators = FAM.getResult<DominatorTreeAnalysis>(F);
    auto &Loops = FAM.getResult<LoopAnalysis>(F);
    DenseMap<const Task *, SmallVector<uint64_t>> Apart;
    for (const Task &T : Work.Tasks)
      if (auto Pointers = pointersApart(T, *probePoint(T, Dominators, Loops), Loops))
        Apart[&T] = std::move(*Pointers);
    if (Apart.size() < 2)
      Apart.clear();
    return Apart;
  }

  // The analyses are asked for anew each time: the task before has changed the function.
  void buildTask(const Task &T, SmallVector<uint64_t> Apart, OptimizationRemarkEmitter &Remarks) {
    auto &Dominators = FAM.getResult<DominatorTreeAnalysis>(F);
    auto &Loops = FAM.getResult<LoopAnalysis>(F);
    Instruction *Probe = probePoint(T, Dominators, Loops);
    Symbols At(Probe, Dominators, Loops, FAM.getResult<ScalarEvolutionAnalysis>(F), FAM.getResult<AAManager>(F));
    const ProbeWords Words = findWords(T, Probe, At, Dominators, Loops);
    // Memory that it would have to ask for later could leave it waiting while others wait for what it has.
    if (Words.UnknownSizes > 0 || !Words.UnknownShapes.empty())
      Apart.clear();
    const unsigned Early = insertEarlyFrees(T, Dominators, Loops);
    for (const Launch *L : T.Launches)
      report(*L, verdictOf(*L, Words, Early, *Probe, !Apart.empty()), Remarks);
    if (!Words.Buffers.empty() || !Words.Launches.empty()) {
      auto *Begin = cast<Instruction>(insertBegin(Words, Apart, nameOf(*Probe), Probe));
      if (!Apart.empty())
        insertEnterAndLeave(T, Begin);
      insertEnds(Begin, T, Words.HasBounds, Dominators, Loops);
    }
    FAM.invalidate(F, PreservedAnalyses::none());
  }

  std::string nameOf(const Instruction &Probe) const { return demangle(F.getName()) + " (" + placeOf(Probe) + ")"; }

  void insertEnds(Instruction *Begin, const Task &T, bool HasBounds, DominatorTree &Dominators, LoopInfo &Loops) {
    SmallPtrSet<Instruction *, 16> Operations(T.Operations.begin(), T.Operations.end());
    SmallPtrSet<Instruction *, 16> Allocations(T.Roots.begin(), T.Roots.end());
    MapVector<Instruction *, bool> Ends, Allocated; // places, and whether the probe dominates them
    const auto Into = [](auto &Places) {
      return [&](Instruction *Before, bool Dominated) { Places.insert({Before, Dominated}); };
    };
    forEachExit(Begin, Operations, Dominators, Into(Ends));
    forEachExit(Begin, Allocations, Dominators, Into(Allocated));
    Allocated.remove_if([&](const auto &Place) {
      return Ends.contains(Place.first) || (!HasBounds && allTaken(T, *Begin, *Place.first, Dominators, Loops));
    });
    TaskNumber Number(Begin);
    for (const auto &[Name, Places] : {std::pair(AllocatedName, &Allocated), std::pair(EndName, &Ends)})
      for (auto [Before, Dominated] : *Places)
        CallInst::Create(F.getParent()->getFunction(Name), {Number.at(Before, Dominated)}, "", Before->getIterator());
    catchExceptions(Begin, T, Dominators);
  }

  Function &F;
  FunctionAnalysisManager &FAM;
};

} // namespace

PreservedAnalyses BuildPass::run(Module &M, ModuleAnalysisManager &MAM) {
  constexpr const char *Done = "heddle.built";
  if (!M.getFunction(BeginName) || M.getNamedMetadata(Done))
    return PreservedAnalyses::all();
  M.getOrInsertNamedMetadata(Done);
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  for (Function &F : M) {
    if (F.isDeclaration() || F.hasFnAttribute(StubAttribute) || F.hasFnAttribute(OwnAttribute))
      continue;
    if (const StringRef Why = reasonNotInlined(F); !Why.empty())
      reportNotInlined(F, Why, FAM.getResult<OptimizationRemarkEmitterAnalysis>(F));
    if (FunctionBuilder(F, FAM).build() && verifyFunction(F, &errs()))
      report_fatal_error("heddle: the function " + Twine(demangle(F.getName())) +
                         " is broken after its tasks were built");
  }
  dropUnusedEntryPoints(M);
  return PreservedAnalyses::none();
}

} // namespace heddle::compiler
