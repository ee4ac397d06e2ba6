#include "driver/Names.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace heddle::compiler {
namespace {

constexpr std::string_view Anonymous = "(anonymous namespace)";
constexpr std::string_view Operator = "operator";

// The name with "<...>" for its template arguments, and nothing from its parameters on.
std::string withoutArguments(std::string_view Name) {
  std::string Out;
  int Depth = 0;
  for (size_t At = 0; At < Name.size(); ++At) {
    const std::string_view Rest = Name.substr(At);
    if (Depth == 0 && Rest.substr(0, Anonymous.size()) == Anonymous) {
      Out += Anonymous;
      At += Anonymous.size() - 1;
      continue;
    }
    if (Name[At] == '<' && Depth++ == 0)
      Out += "<...>";
    if (Depth == 0) {
      if (Name[At] == '(')
        break;
      Out += Name[At];
    }
    if (Name[At] == '>' && Depth > 0)
      --Depth;
  }
  return Out;
}

// Where the name begins behind its return type.
size_t beginOf(std::string_view Name) {
  size_t Begin = 0;
  for (size_t At = 0; At < Name.size(); ++At) {
    if (Name.substr(At, Anonymous.size()) == Anonymous)
      At += Anonymous.size() - 1;
    else if (Name[At] == ' ')
      Begin = At + 1;
  }
  return Begin;
}

// CUB_200200_SM_90, THRUST_300001_SM_900_NS
bool isVersion(std::string_view Part) {
  const auto Is = [&](auto Kind) { return std::any_of(Part.begin(), Part.end(), Kind); };
  return !Is([](unsigned char C) { return !std::isupper(C) && !std::isdigit(C) && C != '_'; }) &&
         Is([](unsigned char C) { return std::isdigit(C); }) && Is([](char C) { return C == '_'; });
}

} // namespace

std::string shortNameOf(const std::string &Demangled) {
  // Of an operator every character may belong to its name.
  if (Demangled.find(Operator) != std::string::npos)
    return Demangled;
  const std::string Name = withoutArguments(Demangled);
  std::string Out;
  for (size_t At = beginOf(Name); At < Name.size();) {
    const size_t End = std::min(Name.find("::", At), Name.size());
    const std::string Part = Name.substr(At, End - At);
    if (!isVersion(Part))
      Out += (Out.empty() ? "" : "::") + Part;
    At = End + 2;
  }
  return Out.empty() ? Demangled : Out;
}

} // namespace heddle::compiler
