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

// Ours, for every file of host code, in C and C++.
constexpr const char *HostFlags[] = {
    // Launches as calls of cudaLaunchKernel, which every version's runtime has.
    "-D__NV_LEGACY_LAUNCH",
    // No pass has that name: clang then keeps source lines for the remarks, and changes nothing else.
    "-Rpass=heddle-lines",
    // The program was written for another compiler: what that one warned of, or did not mention, is no error.
    "-Wno-error",
    "-Wno-unknown-warning-option",
    "-Wno-unused-command-line-argument",
    "-Wno-ignored-optimization-argument",
    "-Wno-error=c++11-narrowing",
    "-Wno-error=register",
    "-Wno-error=reserved-user-defined-literal",
    "-Wno-error=enum-constexpr-conversion",
    "-Wno-error=missing-template-arg-list-after-template-kw",
    "-Wno-error=implicit-function-declaration",
    "-Wno-error=implicit-int",
    "-Wno-error=int-conversion",
    "-Wno-error=incompatible-function-pointer-types",
};

// nvcc's default for host code is no optimisation, in which nothing can be traced. What is optimised unasked must do
// what it did: these take back what an optimiser may conclude from a program that breaks the language's rules.
constexpr const char *DefaultLevel[] = {
    "-O2", "-fno-strict-aliasing", "-fwrapv", "-fno-delete-null-pointer-checks", "-fno-strict-return",
};

// -f... and -m... that are none of nvcc's own.
bool isHostFlag(const std::string &Argument) {
  static const char *const Own[] = {"-fatbin",  "-fdevice", "-fmad", "-ftz", "-ftemplate",
                                    "-forward", "-frandom", "-m32",  "-m64", "-maxr"};
  return (startsWith(Argument, "-f") || startsWith(Argument, "-m")) && !takesNext(Argument) &&
         std::none_of(std::begin(Own), std::end(Own), [&](const char *Name) { return startsWith(Argument, Name); });
}

// The number of "sm_35", "compute_30" or "sm_90a"; 0 for other words.
unsigned architecture(const std::string &Word) {
  const auto Digits = Word.find('_');
  if (Digits == std::string::npos || (!startsWith(Word, "sm_") && !startsWith(Word, "compute_")))
    return 0;
  return static_cast<unsigned>(std::strtoul(Word.c_str() + Digits + 1, nullptr, 10));
}

template <size_t Count> std::string joined(const char *const (&Flags)[Count]) {
  std::string Text;
  for (const char *Flag : Flags)
    Text += (Text.empty() ? "" : ",") + std::string(Flag);
  return Text;
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
    for (const char *Name : Names) {
      if (Argument == Name && At + 1 < Given.size()) {
        Value = Given[++At];
        return true;
      }
      if (hasValue(Argument, Name, Value))
        return true;
    }
    return false;
  }

  void one(const std::string &Argument) {
    std::string Value;
    if (valueOf(Argument, {"-gencode", "--generate-code"}, Value))
      return generateCode(Value);
    if (valueOf(Argument, {"-arch", "--gpu-architecture", "--gpu-name"}, Value))
      return selectArchitecture(Value);
    if (valueOf(Argument, {"-code", "--gpu-code"}, Value))
      return selectCode(Value);
    if (valueOf(Argument, {"-ccbin", "--compiler-bindir"}, Value))
      return note("host compiler " + Value + " replaced by " + With.Clang);
    if (valueOf(Argument, {"-Xcompiler", "--compiler-options"}, Value))
      return hostFlags(Value);
    if (startsWith(Argument, "-Rpass")) // clang's, which nvcc would not pass on
      return add("-Xcompiler", Argument);
    readOnly(Argument);
    if (Forwards && isHostFlag(Argument) && !isTaken(Argument))
      return;
    add(Argument);
    if (takesNext(Argument) && At + 1 < Given.size())
      add(Given[++At]);
  }

  bool isTaken(const std::string &Flag) {
    const bool Unusual = startsWith(Flag, "-f") || startsWith(Flag, "-m") || startsWith(Flag, "--param");
    if (!Unusual || !With.Takes || With.Takes(Flag))
      return true;
    note("clang does not know the host flag " + Flag + "; it is left out");
    return false;
  }

  // Flags for the host compiler, without those that clang does not know.
  void hostFlags(const std::string &List) {
    std::string Kept;
    bool All = true;
    for (const std::string &Flag : wordsOf(List)) {
      HasLevel |= startsWith(Flag, "-O");
      HasOpenMp |= Flag == "-fopenmp";
      if (isTaken(Flag))
        Kept += (Kept.empty() ? "" : ",") + Flag;
      else
        All = false;
    }
    if (All)
      add("-Xcompiler", List);
    else if (!Kept.empty())
      add("-Xcompiler", Kept);
  }

  void readOnly(const std::string &Argument) {
    static const char *const NoLink[] = {"-c",        "-dc",          "-dw",        "-dlink", "-E",      "-M",
                                         "-MM",       "-ptx",         "-cubin",     "-lib",   "-fatbin", "-cuda",
                                         "--compile", "--preprocess", "--device-c", "--ptx",  "--cubin", "--lib"};
    Links &= std::none_of(std::begin(NoLink), std::end(NoLink), [&](const char *Option) { return Argument == Option; });
    HasLevel |= startsWith(Argument, "-O") || startsWith(Argument, "--optimize") || Argument == "-G" ||
                Argument == "--device-debug";
    HasRuntime |= startsWith(Argument, "-cudart") || startsWith(Argument, "--cudart");
    HasOpenMp |= Argument == "-fopenmp";
    Forwards |= startsWith(Argument, "-forward-unknown") || startsWith(Argument, "--forward-unknown");
    NamesOpenMp |= Argument == "-lgomp";
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
        if (Dropped.empty() || Dropped.back() != Word)
          Dropped.push_back(Word);
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
    for (const std::string &Word : Dropped) {
      if (HasArchitecture)
        note(Word + " is not known to this toolkit; it is left out");
      else
        noteReplaced(Word);
    }
    if (!Dropped.empty() && !HasArchitecture)
      add("-arch=" + oldest());
    if (!hasInput(Given))
      return;
    add("-ccbin", With.Clang);
    add("-Xcompiler", "-fpass-plugin=" + With.Plugin);
    add("-Xcompiler", joined(HostFlags));
    if (!HasLevel)
      add("-Xcompiler", joined(DefaultLevel));
    // Threads as clang makes them need its own library, beside the one that the program names.
    if (Links && NamesOpenMp && !HasOpenMp)
      add("-Xcompiler", "-fopenmp");
    for (const char *Definition : Renamed)
      add(Definition);
    if (!HasRuntime)
      add("-cudart", "shared");
    // Makefiles link with -lcuda out of habit: only programs that call the driver should need it where they run.
    if (Links)
      Result.Line.insert(Result.Line.begin(), {"-Xlinker", "--as-needed"});
    // Runs without heddle too; LD_LIBRARY_PATH, which heddle run sets, comes first (new tags).
    if (Links && !HasRuntime && !With.RuntimeDirectory.empty())
      for (const char *Word : {"--enable-new-dtags", "-rpath", With.RuntimeDirectory.c_str()})
        add("-Xlinker", Word);
  }

  const Arguments &Given;
  const Tools &With;
  Command Result;
  size_t At = 0;
  std::vector<std::string> Dropped; // architectures, in the order of the options
  bool Links = true, HasLevel = false, HasRuntime = false, HasArchitecture = false;
  bool HasOpenMp = false, NamesOpenMp = false, Forwards = false;
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
