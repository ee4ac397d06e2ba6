#include "driver/Options.h"

#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>

namespace heddle::compiler {
namespace {

// nvcc --help of CUDA 12 and 13: every option with a value, in its long and its short form. Options of one letter,
// which take their value in the same word as well, are among them.
constexpr const char *WithValue =
    " --output-file -o --pre-include -include --library -l --define-macro -D --undefine-macro -U --include-path -I "
    " --system-include -isystem --library-path -L --output-directory -odir --compiler-bindir -ccbin "
    " --archiver-binary -arbin --cudart -cudart --cudadevrt -cudadevrt --libdevice-directory -ldir "
    " --target-directory -target-dir --optimization-info -opt-info --optimize -O --Ofast-compile -Ofc --dopt -dopt "
    " -ftemplate-backtrace-limit --ftemplate-backtrace-limit -ftemplate-depth --ftemplate-depth --x -x --std -std "
    " --machine -m --compiler-options -Xcompiler --linker-options -Xlinker --archive-options -Xarchive "
    " --ptxas-options -Xptxas --nvlink-options -Xnvlink --cudafe-options -Xcudafe --nvvm-options -Xnvvm "
    " --cicc-options -Xcicc --fatbin-options -Xfatbin --static-global-template-stub -static-global-template-stub "
    " --device-entity-has-hidden-visibility -device-entity-has-hidden-visibility --threads -t --split-compile "
    " -split-compile --split-compile-extended -split-compile-extended --fdevice-time-trace -fdevice-time-trace "
    " --keep-dir -keep-dir --time -time --run-args -run-args --input-drive-prefix -idp --dependency-drive-prefix "
    " -ddp --drive-prefix -dp --dependency-output -MF --dependency-target-name -MT -MQ --gpu-architecture -arch "
    " --gpu-name --gpu-code -code --generate-code -gencode --relocatable-device-code -rdc --entries -e "
    " --maxrregcount -maxrregcount --ftz -ftz --prec-div -prec-div --prec-sqrt -prec-sqrt --fmad -fmad "
    " --default-stream -default-stream --Werror -Werror --diag-error -diag-error --diag-suppress -diag-suppress "
    " --diag-warn -diag-warn --host-linker-script -hls --brief-diagnostics -brief-diag --jump-table-density -jtd "
    " --device-stack-protector -device-stack-protector --compress-mode -compress-mode --frandom-seed -frandom-seed "
    " --sanitize -sanitize --options-file -optf ";

std::string readAll(const std::string &Path, bool &Readable) {
  std::ifstream In(Path);
  Readable = In.good();
  return {std::istreambuf_iterator<char>(In), std::istreambuf_iterator<char>()};
}

// Words that white space separates; quotes hold words together, a backslash takes the next character as it is.
Arguments shellWords(const std::string &Text) {
  Arguments Words;
  std::string Word;
  char Quote = 0;
  bool Inside = false;
  for (size_t I = 0; I < Text.size(); ++I) {
    const char C = Text[I];
    if (C == '\\' && Quote != '\'' && I + 1 < Text.size()) {
      Word += Text[++I];
      Inside = true;
    } else if (Quote ? C == Quote : (C == '"' || C == '\'')) {
      Quote = Quote ? 0 : C;
      Inside = true;
    } else if (!Quote && std::isspace(static_cast<unsigned char>(C))) {
      if (Inside)
        Words.push_back(Word);
      Word.clear();
      Inside = false;
    } else {
      Word += C;
      Inside = true;
    }
  }
  if (Inside)
    Words.push_back(Word);
  return Words;
}

constexpr unsigned MaxDepth = 16; // of files that name files

std::string expand(Arguments &Given, unsigned Depth) {
  Arguments Result;
  for (size_t At = 0; At < Given.size(); ++At) {
    std::string Files;
    if (Given[At].size() > 1 && Given[At][0] == '@')
      Files = Given[At].substr(1);
    else if ((Given[At] == "-optf" || Given[At] == "--options-file") && At + 1 < Given.size())
      Files = Given[++At];
    else if (!hasValue(Given[At], "-optf", Files) && !hasValue(Given[At], "--options-file", Files)) {
      Result.push_back(Given[At]);
      continue;
    }
    if (Depth == MaxDepth)
      return "option files name each other without end: " + Files;
    for (const std::string &Path : wordsOf(Files)) {
      bool Readable = false;
      Arguments Words = shellWords(readAll(Path, Readable));
      if (!Readable)
        return "cannot read the option file " + Path;
      if (std::string Failed = expand(Words, Depth + 1); !Failed.empty())
        return Failed;
      Result.insert(Result.end(), Words.begin(), Words.end());
    }
  }
  Given = std::move(Result);
  return {};
}

} // namespace

bool takesNext(const std::string &Option) {
  return Option.find(' ') == std::string::npos && std::strstr(WithValue, (" " + Option + " ").c_str()) != nullptr;
}

bool hasValue(const std::string &Argument, const char *Name, std::string &Value) {
  const std::string Start = std::string(Name) + "=";
  if (Argument.rfind(Start, 0) != 0)
    return false;
  Value = Argument.substr(Start.size());
  return true;
}

Arguments wordsOf(const std::string &List) {
  Arguments Words;
  std::string Word;
  char Quote = 0;
  for (const char C : List + ",") {
    if (Quote ? C == Quote : (C == '"' || C == '\'')) {
      Quote = Quote ? 0 : C;
    } else if (!Quote && (C == ',' || C == ' ')) {
      if (!Word.empty())
        Words.push_back(Word);
      Word.clear();
    } else {
      Word += C;
    }
  }
  return Words;
}

std::string expandFiles(Arguments &Given) { return expand(Given, 0); }

} // namespace heddle::compiler
