#include "policy/dispatch/table.h"

#include "policy/deadline/elastic.h"
#include "policy/deadline/fifo.h"
#include "policy/deadline/priority.h"
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

template <class Policy, Revocation... revocation>
std::unique_ptr<Deadline> make_deadline(const std::vector<DeviceId>& devices) {
  return std::make_unique<Policy>(devices, revocation...);
}

// With all the devices that a pool has it is made by the family.
template <class Policy, Revocation... revocation>
std::unique_ptr<Dispatch> make_alone() {
  const DeviceId device{0};
  return dispatch_of(make_deadline<Policy, revocation...>({device}), device);
}

template <class Policy, Revocation... revocation>
constexpr DispatchEntry deadlines(std::string_view name, std::string_view description) {
  return {name, description, make_alone<Policy, revocation...>, make_deadline<Policy, revocation...>};
}

constexpr DispatchEntry kDispatchTable[] = {
    {"open", "everybody issues at any time and the hardware decides", make<Open>},
    {"fs", "one at a time, in turns by weight", make<Fs>},
    {"tfs", "one at a time, by weight over what each has had of the device", make<Tfs>},
    {"las", "one at a time, who has had least of the device first", make<Las>},
    {"token", "one at a time, by the fractions of the device that jobs request and are limited to", make<Token>},
    {"token:overlap", "as token, but the next does not wait for what the last has in flight",
     [] { return std::unique_ptr<Dispatch>(std::make_unique<Token>(true)); }},
    deadlines<Fifo>("fifo", "one at a time, who has waited longest first, until its burst ends"),
    deadlines<Priority, Revocation::kOff>("priority:off", "requests of user-facing jobs first, when a burst has ended"),
    deadlines<Priority, Revocation::kSoft>("priority:soft", "as priority:off, but batch jobs are withdrawn for them"),
    deadlines<Priority, Revocation::kHard>("priority:hard",
                                           "as priority:soft, and terminated where a request would else be late"),
    deadlines<Elastic, Revocation::kOff>("elastic:off", "as many devices kept for requests as they need"),
    deadlines<Elastic, Revocation::kSoft>("elastic:soft", "as elastic:off, but batch jobs there are withdrawn"),
    deadlines<Elastic, Revocation::kHard>("elastic:hard",
                                          "as elastic:soft, and terminated where a request would else be late"),
};

std::string known() {
  std::string names;
  for (const DispatchEntry& entry : kDispatchTable) append(names, names.empty() ? "" : ", ", entry.name);
  return names;
}

}  // namespace

std::span<const DispatchEntry> dispatch_table() {
  return kDispatchTable;
}

Result<const DispatchEntry*> find_dispatch(std::string_view name) {
  for (const DispatchEntry& entry : kDispatchTable) {
    if (entry.name == name) return &entry;
  }
  return fail(ErrorCode::kNotFound, "dispatch policy '%.*s': there is none of that name; known policies: %s",
              static_cast<int>(name.size()), name.data(), known().c_str());
}

Result<std::unique_ptr<Dispatch>> make_dispatch(std::string_view name) {
  const auto entry = find_dispatch(name);
  if (!entry) return tl::unexpected(entry.error());
  return (*entry)->make();
}

}  // namespace heddle::policy
