#include "policy/dispatch/table.h"

#include "policy/dispatch/fs.h"
#include "policy/dispatch/las.h"
#include "policy/dispatch/open.h"
#include "policy/dispatch/tfs.h"
#include "policy/dispatch/token.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

template <class Policy>
std::unique_ptr<Dispatch> make() {
  return std::make_unique<Policy>();
}

constexpr DispatchEntry kTable[] = {
    {"open", "everybody issues at any time and the hardware decides", make<Open>},
    {"fs", "one at a time, in turns by weight", make<Fs>},
    {"tfs", "one at a time, by weight over what each has had of the device", make<Tfs>},
    {"las", "one at a time, who has had least of the device first", make<Las>},
    {"token", "one at a time, by the fractions of the device that jobs request and are limited to", make<Token>},
    {"token:overlap", "as token, but the next does not wait for what the last has in flight",
     [] { return std::unique_ptr<Dispatch>(std::make_unique<Token>(true)); }},
};

std::string known() {
  std::string names;
  for (const DispatchEntry& entry : kTable) append(names, names.empty() ? "" : ", ", entry.name);
  return names;
}

}  // namespace

std::span<const DispatchEntry> dispatch_table() {
  return kTable;
}

Result<std::unique_ptr<Dispatch>> make_dispatch(std::string_view name) {
  for (const DispatchEntry& entry : kTable) {
    if (entry.name == name) return entry.make();
  }
  return fail(ErrorCode::kNotFound, "dispatch policy '%.*s': there is none of that name; known policies: %s",
              static_cast<int>(name.size()), name.data(), known().c_str());
}

}  // namespace heddle::policy
