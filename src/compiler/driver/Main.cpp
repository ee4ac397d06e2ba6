// heddle cc: nvcc with clang and heddle's pass as host compiler. Under the name nvcc (makeToolkit) it takes nvcc's
// arguments only; under its own, options of its own come first.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include "driver/Advice.h"
#include "driver/Process.h"
#include "driver/Table.h"
#include "driver/Toolkit.h"

using namespace heddle::compiler;

namespace {

constexpr const char *Usage =
    R"(heddle cc: compiles CUDA programs so that heddle knows their tasks before they run.
usage: heddle cc [--report] NVCC-ARGUMENTS     compile and link as nvcc does
       heddle cc --env                         print variables that make every nvcc do the same (eval them)
       heddle cc --table [--full-names] FILE   print what became of the launches of a whole build (HEDDLE_CC_REPORT=FILE)
       heddle cc --toolkit DIRECTORY           make a toolkit whose bin/nvcc is heddle's, for CUDA_DIR and CMake
--report prints what became of each launch: bound, partly or lazy, and why. Kernels of templates are named without
their arguments; --full-names gives the whole names.
-Rpass=heddle and -Rpass-missed=heddle say the same as compiler remarks. docs/compiling.md has more.
)";

int fail(const std::string &Text) {
  std::fprintf(stderr, "heddle cc: %s\n", Text.c_str());
  return 1;
}

std::string quoted(const std::string &Text) {
  std::string Result = "'";
  for (const char C : Text)
    Result += C == '\'' ? std::string("'\\''") : std::string(1, C);
  return Result + "'";
}

std::string contentsOf(const char *Path) {
  std::ifstream In(Path);
  return {std::istreambuf_iterator<char>(In), std::istreambuf_iterator<char>()};
}

// Runs nvcc; where it fails, says what may help.
int runNvcc(const Tools &With, const Arguments &Line) {
  std::string Errors;
  const int Status = runWatched(With.Nvcc, Line, Errors);
  if (Status != 0)
    for (const std::string &Advice : adviceFor(Errors))
      std::fprintf(stderr, "heddle cc: %s\n", Advice.c_str());
  return Status;
}

// Runs nvcc with a file that the pass writes to, and prints it as a table.
int reportOn(const Tools &With, const Arguments &Line) {
  char Path[] = "/tmp/heddle-cc.XXXXXX";
  const int File = ::mkstemp(Path);
  if (File < 0)
    return fail(std::string("cannot make a file in /tmp: ") + std::strerror(errno));
  ::close(File);
  ::setenv("HEDDLE_CC_REPORT", Path, 1);
  const int Status = runNvcc(With, Line);
  const std::string Lines = contentsOf(Path);
  ::unlink(Path);
  if (Status == 0)
    std::fputs(tableOf(Lines).c_str(), stdout);
  return Status;
}

} // namespace

int main(int Count, char **Words) {
  Arguments Given(Words + 1, Words + Count);
  const std::string Name = std::strrchr(Words[0], '/') ? std::strrchr(Words[0], '/') + 1 : Words[0];
  const bool Own = Name != "nvcc";
  if (Own && (Given.empty() || Given[0] == "--help")) {
    std::fputs(Usage, Given.empty() ? stderr : stdout);
    return Given.empty() ? 2 : 0;
  }
  Tools With;
  if (const std::string Missing = findTools(With); !Missing.empty())
    return fail(Missing);
  if (Own && Given[0] == "--env") {
    for (const auto &[Variable, Value] : environmentFor(With))
      std::printf("export %s=%s\n", Variable.c_str(), quoted(Value).c_str());
    return 0;
  }
  if (Own && Given[0] == "--table") {
    const bool FullNames = Given.size() > 1 && Given[1] == "--full-names";
    if (Given.size() != (FullNames ? 3 : 2))
      return fail("--table needs the file that HEDDLE_CC_REPORT named: heddle cc --table [--full-names] FILE");
    std::fputs(tableOf(contentsOf(Given.back().c_str()), FullNames).c_str(), stdout);
    return 0;
  }
  if (Own && Given[0] == "--toolkit") {
    if (Given.size() != 2)
      return fail("--toolkit needs the directory to make");
    const std::string Failed = makeToolkit(Given[1], With);
    return Failed.empty() ? 0 : fail(Failed);
  }
  const bool Report = Own && Given[0] == "--report";
  if (Report)
    Given.erase(Given.begin());
  if (const std::string Failed = expandFiles(Given); !Failed.empty())
    return fail(Failed);
  With.Supported = supportedArchitectures(With.Nvcc);
  const Command Made = commandFor(Given, With);
  for (const std::string &Note : Made.Notes)
    std::fprintf(stderr, "heddle cc: %s\n", Note.c_str());
  return Report ? reportOn(With, Made.Line) : runNvcc(With, Made.Line);
}
