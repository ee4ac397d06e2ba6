#include "driver/Command.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace heddle::compiler {
namespace {

bool startsWith(const std::string &Text, const char *Start) { return Text.rfind(Start, 0) == 0; }

// Functions that CUDA 13 no longer has, by what its predecessors documented in their place.
constexpr const char *Renamed[] = {
    "-DcudaThreadSynchronize=cudaDeviceSynchronize",
    "-DcudaThreadExit=cudaDeviceReset",
    "-DcudaThreadGetLimit=cudaDeviceGetLimit",
    "-DcudaThreadSetLimit=cudaDeviceSetLimit",
    "-DcudaThreadGetCacheConfig=cudaDeviceGetCacheConfig",
    "-DcudaThreadSetCacheConfig=cudaDeviceSetCacheConfig",
};

// Options whose value is the next argument, as far as they stand between us and the inputs.
bool takesNext(const std::string &Option) {
  static const char *const Options[] = {"-o",
                                        "-I",
                                        "-L",
                                        "-l",
                                        "-D",
                                        "-U",
                                        "-include",
                                        "-isystem",
                                        "-x",
                                        "-Xcompiler",
                                        "-Xlinker",
                                        "-Xptxas",
                                        "-Xcudafe",
                                        "-arch",
                                        "-code",
                                        "-gencode",
                                        "-ccbin",
                                        "-cudart",
                                        "-maxrregcount",
                                        "-std",
                                        "-m",
                                        "-odir",
                                        "-t",
                                        "-MF",
                                        "-MT",
                                        "-MQ",
                                        "-O",
                                        "-Xarchive",
                                        "-Xnvlink",
                                        "-diag-suppress",
                                        "--diag-suppress",
                                        "-prec-div",
                                        "-ftz"};
  return std::any_of(std::begin(Options), std::end(Options), [&](const char *Known) { return Option == Known; });
}

// The number of "sm_35", "compute_30" or "sm_90a"; 0 for other words.
unsigned architecture(const std::string &Word) {
  const auto Digits = Word.find('_');
  if (Digits == std::string::npos || (!startsWith(Word, "sm_") && !startsWith(Word, "compute_")))
    return 0;
  return static_cast<unsigned>(std::strtoul(Word.c_str() + Digits + 1, nullptr, 10));
}

// Reads the arguments one after the other and writes the command.
class Rewriter {
public:
  Rewriter(const Arguments &All, const Tools &Machine) : Given(All), With(Machine) {}

  Command rewrite() {
    for (At = 0; At < Given.size(); ++At)
      one(Given[At]);
    finish();
    return std::move(Result);
  }

private:
  void add(const std::string &Argument) { Result.Line.push_back(Argument); }
  void add(const char *Option, const std::string &Value) {
    add(Option);
    add(Value);
  }
  void note(const std::string &Text) {
    if (std::find(Result.Notes.begin(), Result.Notes.end(), Text) == Result.Notes.end())
      Result.Notes.push_back(Text);
  }

  // The value of an option in its forms "NAME=value" and "NAME value".
  bool valueOf(const std::string &Argument, std::initializer_list<const char *> Names, std::string &Value) {
    for (const std::string Name : Names) {
      if (Argument == Name && At + 1 < Given.size()) {
        Value = Given[++At];
        return true;
      }
      if (startsWith(Argument, (Name + "=").c_str())) {
        Value = Argument.substr(Name.size() + 1);
        return true;
      }
    }
    return false;
  }

  void one(const std::string &Argument) {
    std::string Value;
    if (valueOf(Argument, {"-gencode", "--generate-code"}, Value))
      return generateCode(Value);
    if (valueOf(Argument, {"-arch", "--gpu-architecture"}, Value))
      return selectArchitecture(Value);
    if (valueOf(Argument, {"-code", "--gpu-code"}, Value))
      return selectCode(Value);
    if (valueOf(Argument, {"-ccbin", "--compiler-bindir"}, Value))
      return note("host compiler " + Value + " replaced by " + With.Clang);
    if (startsWith(Argument, "-Rpass")) // clang's, which nvcc would not pass on
      return add("-Xcompiler", Argument);
    readOnly(Argument);
    add(Argument);
    if (takesNext(Argument) && At + 1 < Given.size()) {
      readValue(Argument, Given[At + 1]);
      add(Given[++At]);
    }
  }

  void readOnly(const std::string &Argument) {
    static const char *const NoLink[] = {"-c",        "-dc",          "-dw",        "-dlink", "-E",      "-M",
                                         "-MM",       "-ptx",         "-cubin",     "-lib",   "-fatbin", "-cuda",
                                         "--compile", "--preprocess", "--device-c", "--ptx",  "--cubin", "--lib"};
    Links &= std::none_of(std::begin(NoLink), std::end(NoLink), [&](const char *Option) { return Argument == Option; });
    HasLevel |= startsWith(Argument, "-O") || startsWith(Argument, "--optimize") || Argument == "-G" ||
                Argument == "--device-debug" ||
                ((startsWith(Argument, "-Xcompiler=") || startsWith(Argument, "--compiler-options=")) &&
                 Argument.find("-O") != std::string::npos);
    HasRuntime |= startsWith(Argument, "-cudart") || startsWith(Argument, "--cudart");
  }

  void readValue(const std::string &Option, const std::string &Value) {
    if (Option == "-Xcompiler")
      HasLevel |= Value.find("-O") != std::string::npos;
  }

  bool isSupported(unsigned Number) const {
    return Number == 0 || With.Supported.empty() ||
           std::find(With.Supported.begin(), With.Supported.end(), Number) != With.Supported.end();
  }
  std::string oldest() const { return "sm_" + std::to_string(With.Supported.front()); }
  void noteReplaced(const std::string &What) {
    note(What + " is not known to this toolkit; " + oldest() + " takes its place");
  }

  void generateCode(const std::string &Value) {
    // arch=compute_30,code=sm_30 or code=[sm_30,compute_30] or code="sm_30,compute_30"
    std::string Word;
    for (size_t I = 0; I <= Value.size(); ++I) {
      const char C = I < Value.size() ? Value[I] : ',';
      if (std::isalnum(static_cast<unsigned char>(C)) || C == '_') {
        Word += C;
        continue;
      }
      if (!isSupported(architecture(Word))) {
        noteReplaced(Word);
        Dropped = true;
        return;
      }
      Word.clear();
    }
    HasArchitecture = true;
    add("-gencode", Value);
  }

  void selectArchitecture(const std::string &Value) {
    HasArchitecture = true;
    if (isSupported(architecture(Value)))
      return add("-arch=" + Value);
    noteReplaced(Value);
    add("-arch=" + oldest());
  }

  void selectCode(const std::string &Value) {
    std::string First = Value.substr(0, Value.find(','));
    if (isSupported(architecture(First)))
      return add("-code=" + Value);
    noteReplaced(First); // -arch alone says both
  }

  void finish() {
    if (Dropped && !HasArchitecture)
      add("-arch=" + oldest());
    if (!hasInput(Given))
      return;
    add("-ccbin", With.Clang);
    add("-Xcompiler", "-fpass-plugin=" + With.Plugin);
    // Launches as calls of cudaLaunchKernel, which every version's runtime has.
    add("-Xcompiler", "-D__NV_LEGACY_LAUNCH");
    // No pass has that name: clang then keeps source lines for the remarks, and changes nothing else.
    add("-Xcompiler", "-Rpass=heddle-lines");
    if (!HasLevel)
      add("-Xcompiler", "-O2"); // nvcc's own default for host code is none, in which nothing can be traced
    for (const char *Definition : Renamed)
      add(Definition);
    if (!HasRuntime)
      add("-cudart", "shared");
    // Runs without heddle too; LD_LIBRARY_PATH, which heddle run sets, comes first (new tags).
    if (Links && !HasRuntime && !With.RuntimeDirectory.empty())
      for (const char *Word : {"--enable-new-dtags", "-rpath", With.RuntimeDirectory.c_str()})
        add("-Xlinker", Word);
  }

  const Arguments &Given;
  const Tools &With;
  Command Result;
  size_t At = 0;
  bool Links = true, HasLevel = false, HasRuntime = false, HasArchitecture = false, Dropped = false;
};

} // namespace

bool hasInput(const Arguments &Given) {
  for (size_t I = 0; I < Given.size(); ++I) {
    if (takesNext(Given[I]))
      ++I;
    else if (!Given[I].empty() && Given[I][0] != '-')
      return true;
  }
  return false;
}

Command commandFor(const Arguments &Given, const Tools &With) { return Rewriter(Given, With).rewrite(); }

std::vector<std::pair<std::string, std::string>> environmentFor(const Tools &With) {
  std::string Flags;
  for (const std::string &Argument : commandFor({"-c", "-cudart=none", "x.cu"}, With).Line) {
    if (Argument == "-c" || Argument == "x.cu" || Argument == "-cudart=none")
      continue;
    Flags += (Flags.empty() ? "" : " ") + Argument;
  }
  // nvcc's own variable for the host compiler, and what it adds behind each command line.
  const size_t Host = Flags.find("-ccbin " + With.Clang + " ");
  if (Host != std::string::npos)
    Flags.erase(Host, ("-ccbin " + With.Clang + " ").size());
  return {{"NVCC_CCBIN", With.Clang}, {"NVCC_APPEND_FLAGS", Flags}};
}

} // namespace heddle::compiler
