#include "driver/Toolkit.h"

#include "driver/Process.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace fs = std::filesystem;

namespace heddle::compiler {
namespace {

fs::path ownProgram() {
  std::error_code Error;
  return fs::read_symlink("/proc/self/exe", Error);
}

bool isProgram(const fs::path &Path) {
  std::error_code Error;
  const auto Status = fs::status(Path, Error);
  return fs::is_regular_file(Status) && (Status.permissions() & fs::perms::owner_exec) != fs::perms::none;
}

// A directory of makeToolkit has this program as its nvcc.
bool isOurs(const fs::path &Path) {
  std::error_code Error;
  return fs::equivalent(Path, ownProgram(), Error);
}

std::string onPath(const char *Name) {
  const char *Variable = std::getenv("PATH");
  const std::string Path = Variable ? Variable : "";
  for (size_t From = 0; From <= Path.size();) {
    const size_t To = std::min(Path.find(':', From), Path.size());
    const fs::path Candidate = fs::path(Path.substr(From, To - From)) / Name;
    if (isProgram(Candidate) && !isOurs(Candidate))
      return Candidate;
    From = To + 1;
  }
  return {};
}

std::string findNvcc() {
  if (const char *Named = std::getenv("HEDDLE_NVCC"))
    return isProgram(Named) && !isOurs(Named) ? Named : "";
  for (const char *Variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char *Root = std::getenv(Variable);
    const fs::path Candidate = fs::path(Root ? Root : "") / "bin/nvcc";
    if (Root && isProgram(Candidate) && !isOurs(Candidate))
      return Candidate;
  }
  const std::string Found = onPath("nvcc");
  return !Found.empty() ? Found : isProgram("/usr/local/cuda/bin/nvcc") ? "/usr/local/cuda/bin/nvcc" : "";
}

std::string findClang() {
  if (const char *Named = std::getenv("HEDDLE_CLANG"))
    return Named;
  const std::string Found = onPath("clang++-19");
  return !Found.empty() ? Found : isProgram("/usr/lib/llvm-19/bin/clang++") ? "/usr/lib/llvm-19/bin/clang++" : "";
}

// As built, and as installed: bin/heddle-cc, lib/heddle/heddle-pass.so.
std::string findPlugin() {
  if (const char *Named = std::getenv("HEDDLE_PASS"))
    return Named;
  const fs::path Beside = ownProgram().parent_path().parent_path() / "lib/heddle/heddle-pass.so";
  std::error_code Error;
  return fs::exists(Beside, Error) ? Beside.string() : "";
}

// The toolkit that a compiler at .../bin/nvcc belongs to, links followed.
fs::path rootOf(const std::string &Nvcc) {
  std::error_code Error;
  const fs::path Real = fs::canonical(Nvcc, Error);
  return (Error ? fs::path(Nvcc) : Real).parent_path().parent_path();
}

} // namespace

std::string findTools(Tools &Found) {
  Found.Nvcc = findNvcc();
  if (Found.Nvcc.empty())
    return "no nvcc was found: install the CUDA toolkit in /usr/local/cuda, or set CUDA_HOME or HEDDLE_NVCC";
  Found.Clang = findClang();
  if (Found.Clang.empty())
    return "no clang++-19 was found: install clang-19, or set HEDDLE_CLANG";
  Found.Plugin = findPlugin();
  if (Found.Plugin.empty())
    return "heddle's pass was not found beside heddle (lib/heddle/heddle-pass.so): install heddle whole, or set "
           "HEDDLE_PASS";
  std::error_code Error;
  const fs::path Libraries = rootOf(Found.Nvcc) / "lib64";
  if (fs::is_directory(Libraries, Error))
    Found.RuntimeDirectory = Libraries;
  Found.Takes = [Clang = Found.Clang](const std::string &Flag) {
    static const char *const Usual[] = {"-fPIC", "-fpic", "-fPIE", "-fpie", "-fopenmp", "-m64", "-march=native"};
    return std::any_of(std::begin(Usual), std::end(Usual), [&](const char *Known) { return Flag == Known; }) ||
           runQuietly(Clang, {"-fsyntax-only", Flag, "-x", "c++", "/dev/null"}) == 0;
  };
  return {};
}

std::vector<unsigned> supportedArchitectures(const std::string &Nvcc) {
  std::vector<unsigned> Numbers;
  const std::string Question = "'" + Nvcc + "' --list-gpu-arch 2>/dev/null";
  FILE *Answer = ::popen(Question.c_str(), "r");
  if (!Answer)
    return Numbers;
  std::array<char, 64> Line;
  while (std::fgets(Line.data(), Line.size(), Answer)) {
    unsigned Number = 0;
    if (std::sscanf(Line.data(), "compute_%u", &Number) == 1)
      Numbers.push_back(Number);
  }
  ::pclose(Answer);
  std::sort(Numbers.begin(), Numbers.end());
  return Numbers;
}

std::string makeToolkit(const std::string &Directory, const Tools &With) {
  std::error_code Error;
  fs::create_directories(fs::path(Directory) / "bin", Error);
  if (Error)
    return "cannot make " + Directory + "/bin: " + Error.message();
  const auto Link = [&](const fs::path &To, const fs::path &Place) {
    std::error_code Failed;
    fs::remove(Place, Failed);
    fs::create_symlink(To, Place, Failed);
    return Failed ? "cannot link " + Place.string() + ": " + Failed.message() : std::string();
  };
  const fs::path Root = rootOf(With.Nvcc);
  for (const fs::path &From : {Root, Root / "bin"}) {
    const fs::path Into = From == Root ? fs::path(Directory) : fs::path(Directory) / "bin";
    for (const auto &Entry : fs::directory_iterator(From, Error)) {
      const fs::path Name = Entry.path().filename();
      if (Name == "bin" || Name == "nvcc")
        continue;
      if (std::string Failed = Link(Entry.path(), Into / Name); !Failed.empty())
        return Failed;
    }
  }
  return Link(ownProgram(), fs::path(Directory) / "bin/nvcc");
}

} // namespace heddle::compiler
