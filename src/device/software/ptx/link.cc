#include "device/software/ptx/link.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace heddle::ptx {
namespace {

bool is_definition(const Function& function) {
  return function.defined;
}
// Arrays of dynamic shared memory are declared everywhere and defined nowhere.
bool is_definition(const Variable& variable) {
  return !variable.external;
}

// Adds what `from` holds to `to`, one for each name; `places` says where in `to` names stand.
template <class Item>
Status merge(std::vector<Item>& to, std::unordered_map<std::string, size_t>& places, std::vector<Item> from) {
  for (Item& item : from) {
    auto [place, added] = places.emplace(item.name, to.size());
    if (added) {
      to.push_back(std::move(item));
      continue;
    }
    Item& known = to[place->second];
    if (!is_definition(item)) continue;
    if (!is_definition(known)) {
      known = std::move(item);
    } else if (!known.weak && !item.weak) {
      return fail(ErrorCode::kNotSupported, "'%s' is defined in two of the program's separately compiled units",
                  item.name.c_str());
    }
  }
  return {};
}

}  // namespace

Result<Module> link(std::vector<Module> units) {
  if (units.size() == 1) return std::move(units.front());
  Module linked;
  linked.version = units.front().version;
  linked.target = units.front().target;
  std::unordered_map<std::string, size_t> functions, variables;
  for (Module& unit : units) {
    HEDDLE_TRY(merge(linked.functions, functions, std::move(unit.functions)));
    HEDDLE_TRY(merge(linked.variables, variables, std::move(unit.variables)));
  }
  return linked;
}

}  // namespace heddle::ptx
