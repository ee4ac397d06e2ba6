#include "pass/FoldLogarithm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;

namespace heddle::compiler {
namespace {

// Where the host's long double is x87's, 64 bits of mantissa in 10 bytes, its own logl answers.
constexpr bool HostHasX87 = std::numeric_limits<long double>::digits == 64;
constexpr unsigned X87Bits = 80;

long double hostValue(const APFloat &Value) {
  long double Host = 0;
  std::memcpy(&Host, Value.bitcastToAPInt().getRawData(), X87Bits / 8);
  return Host;
}

APFloat compilerValue(long double Host) {
  uint64_t Words[2] = {};
  std::memcpy(Words, &Host, X87Bits / 8);
  return APFloat(APFloat::x87DoubleExtended(), APInt(X87Bits, Words));
}

// The argument, where the call is logl of a constant above zero: of others it sets errno.
ConstantFP *foldableArgument(const CallInst &Call, const TargetLibraryInfo &Library) {
  LibFunc Function;
  const auto *Callee = Call.getCalledFunction();
  if (!Callee || !Library.getLibFunc(*Callee, Function) || Function != LibFunc_logl || !Call.getType()->isX86_FP80Ty())
    return nullptr;
  auto *Argument = dyn_cast<ConstantFP>(Call.getArgOperand(0));
  if (!Argument || !Argument->getValueAPF().isFiniteNonZero() || Argument->isNegative())
    return nullptr;
  return Argument;
}

} // namespace

PreservedAnalyses FoldLogarithmPass::run(Function &F, FunctionAnalysisManager &Analyses) {
  if (!HostHasX87)
    return PreservedAnalyses::all();
  const auto &Library = Analyses.getResult<TargetLibraryAnalysis>(F);
  bool Changed = false;
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Call = dyn_cast<CallInst>(&I);
    const ConstantFP *Argument = Call ? foldableArgument(*Call, Library) : nullptr;
    if (!Argument)
      continue;
    const long double Logarithm = std::log(hostValue(Argument->getValueAPF()));
    Call->replaceAllUsesWith(ConstantFP::get(Call->getContext(), compilerValue(Logarithm)));
    Call->eraseFromParent();
    Changed = true;
  }
  if (!Changed)
    return PreservedAnalyses::all();
  PreservedAnalyses Preserved;
  Preserved.preserveSet<CFGAnalyses>();
  return Preserved;
}

} // namespace heddle::compiler
