#include "pass/Report.h"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace heddle::compiler {
namespace {

const char *wordFor(Verdict::Kind Kind) {
  switch (Kind) {
  case Verdict::Kind::Bound:
    return "bound";
  case Verdict::Kind::Partly:
    return "partly";
  case Verdict::Kind::Lazy:
    break;
  }
  return "lazy";
}

// One write a line: several compilers may append to the same file.
void appendLine(const char *Path, const std::string &Line) {
  std::error_code Error;
  raw_fd_ostream Out(Path, Error, sys::fs::OF_Append | sys::fs::OF_Text);
  if (!Error)
    Out << Line;
}

} // namespace

std::string placeOf(const Instruction &I) {
  const DILocation *At = I.getDebugLoc();
  if (!At)
    return I.getModule()->getSourceFileName();
  // The innermost line of the program itself, not of a library's header.
  const DILocation *Inner = At;
  while (At->getFilename().contains("/include/") && At->getInlinedAt())
    At = At->getInlinedAt();
  if (At->getFilename().contains("/include/"))
    At = Inner;
  return (At->getFilename() + ":" + Twine(At->getLine())).str();
}

void report(const Launch &L, const Verdict &V, OptimizationRemarkEmitter &Remarks) {
  const std::string Kernel = L.kernelName();
  if (V.What == Verdict::Kind::Bound) {
    Remarks.emit([&] {
      return OptimizationRemark("heddle", "Bound", L.Push) << "launch of " << Kernel << " is bound: " << V.Text;
    });
  } else {
    Remarks.emit([&] {
      return OptimizationRemarkMissed("heddle", "Lazy", L.Push)
             << "launch of " << Kernel << (V.What == Verdict::Kind::Partly ? " is partly bound: " : " stays lazy: ")
             << V.Text;
    });
  }
  if (const char *Path = std::getenv("HEDDLE_CC_REPORT"))
    appendLine(Path, placeOf(*L.Push) + "\t" + demangle(L.Push->getFunction()->getName()) + "\t" + Kernel + "\t" +
                         wordFor(V.What) + "\t" + V.Text + "\n");
}

void reportNotInlined(Function &F, StringRef Why, OptimizationRemarkEmitter &Remarks) {
  Remarks.emit([&] {
    return OptimizationRemarkMissed("heddle", "NotInlined", DiagnosticLocation(F.getSubprogram()), &F.getEntryBlock())
           << demangle(F.getName()) << " does GPU work and is not inlined: " << Why;
  });
}

} // namespace heddle::compiler
