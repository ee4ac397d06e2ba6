// The plugin that clang 19 loads (-fpass-plugin): registers both phases at their places in the pipeline, and by name
// for opt: heddle-prepare, heddle-build. Beside them, one thing that host code compiled by g++ has and clang's lacks.

#include "pass/Build.h"
#include "pass/FoldLogarithm.h"
#include "pass/Prepare.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"

using namespace llvm;
using namespace heddle::compiler;

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "heddle", "1", [](PassBuilder &Builder) {
            Builder.registerPipelineStartEPCallback(
                [](ModulePassManager &Passes, OptimizationLevel) { Passes.addPass(PreparePass()); });
            Builder.registerOptimizerEarlyEPCallback(
                [](ModulePassManager &Passes, OptimizationLevel) { Passes.addPass(BuildPass()); });
            // Behind each round of simplification: arguments become constants by inlining.
            Builder.registerPeepholeEPCallback(
                [](FunctionPassManager &Passes, OptimizationLevel) { Passes.addPass(FoldLogarithmPass()); });
            Builder.registerPipelineParsingCallback(
                [](StringRef Name, ModulePassManager &Passes, ArrayRef<PassBuilder::PipelineElement>) {
                  if (Name == "heddle-prepare")
                    Passes.addPass(PreparePass());
                  else if (Name == "heddle-build")
                    Passes.addPass(BuildPass());
                  else
                    return false;
                  return true;
                });
          }};
}
