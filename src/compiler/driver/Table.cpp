#include "driver/Table.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "driver/Names.h"

namespace heddle::compiler {
namespace {

struct Row {
  std::string Place, Kernel, Verdict, Text;
};

int badness(const std::string &Verdict) { return Verdict == "bound" ? 0 : Verdict == "partly" ? 1 : 2; }

std::vector<Row> readRows(const std::string &Lines) {
  std::vector<Row> Rows;
  std::map<std::pair<std::string, std::string>, size_t> Known;
  std::istringstream In(Lines);
  for (std::string Line; std::getline(In, Line);) {
    std::istringstream Words(Line);
    std::string Function;
    Row R;
    std::getline(Words, R.Place, '\t');
    std::getline(Words, Function, '\t');
    std::getline(Words, R.Kernel, '\t');
    std::getline(Words, R.Verdict, '\t');
    std::getline(Words, R.Text);
    const auto [Found, New] = Known.try_emplace({R.Place, R.Kernel}, Rows.size());
    if (New)
      Rows.push_back(R);
    // A function that was inlined everywhere stays lazy on its own, and that copy is never called from here.
    else if (badness(R.Verdict) < badness(Rows[Found->second].Verdict))
      Rows[Found->second] = R;
  }
  return Rows;
}

} // namespace

std::string tableOf(const std::string &Lines, bool FullNames) {
  std::vector<Row> Rows = readRows(Lines);
  if (Rows.empty())
    return "heddle cc: no kernel is launched\n";
  size_t Place = 0, Kernel = 0, Count[3] = {};
  for (Row &R : Rows) {
    if (!FullNames)
      R.Kernel = shortNameOf(R.Kernel);
    Place = std::max(Place, R.Place.size());
    Kernel = std::max(Kernel, R.Kernel.size());
    ++Count[badness(R.Verdict)];
  }
  std::ostringstream Out;
  const auto Cell = [&](const std::string &Text, size_t Width) {
    Out << Text << std::string(Width - std::min(Width, Text.size()) + 2, ' ');
  };
  for (const Row &R : Rows) {
    Cell(R.Place, Place);
    Cell(R.Kernel, Kernel);
    Cell(R.Verdict, 6);
    Out << R.Text << "\n";
  }
  Out << "heddle cc: " << Rows.size() << " launches: " << Count[0] << " bound, " << Count[1] << " partly, " << Count[2]
      << " lazy\n";
  return Out.str();
}

} // namespace heddle::compiler
