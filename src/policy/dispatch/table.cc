#include "policy/dispatch/table.h"

#include <optional>

#include "policy/deadline/elastic.h"
#include "policy/deadline/fifo.h"
#include "policy/deadline/priority.h"
#include "policy/deadline/share.h"
#include "policy/dispatch/fs.h"
#include "policy/dispatch/las.h"
#include "policy/dispatch/open.h"
#include "policy/dispatch/tfs.h"
#include "policy/dispatch/token.h"
#include "policy/text.h"

namespace heddle::policy {
namespace {

using MadeDispatch = Result<std::unique_ptr<Dispatch>>;

template <class Policy, auto... options>
MadeDispatch make(std::string_view /*argument*/) {
  return std::make_unique<Policy>(options...);
}

MadeDispatch make_las(std::string_view argument) {
  const auto count = count_in(argument);
  if (!count || *count > Las::kMostAtATime)
    return fail(ErrorCode::kInvalidArgument,
                "las takes how many lessees have the device at a time, a number from 1 to %u; write it like las:4",
                Las::kMostAtATime);
  return std::make_unique<Las>(*count);
}

template <class Policy, Revocation... revocation>
std::unique_ptr<DeadlinePolicy> make_deadline(const std::vector<DeviceId>& devices) {
  return std::make_unique<Policy>(devices, revocation...);
}

// With all the devices that a pool has it is made by the family.
template <class Policy, Revocation... revocation>
MadeDispatch make_alone(std::string_view /*argument*/) {
  const DeviceId device{0};
  return dispatch_of(make_deadline<Policy, revocation...>({device}), device);
}

template <class Policy, Revocation... revocation>
constexpr DispatchEntry deadlines(std::string_view name, std::string_view description) {
  return {name, "", description, make_alone<Policy, revocation...>, make_deadline<Policy, revocation...>};
}

constexpr DispatchEntry bounding_batch(DispatchEntry entry) {
  entry.bounds_batch = true;
  return entry;
}

constexpr DispatchEntry kDispatchTable[] = {
    {"open", "", "everybody issues at any time and the hardware decides", make<Open>},
    {"fs", "", "one at a time, in turns by weight", make<Fs>},
    {"tfs", "", "one at a time, by weight over what each has had of the device", make<Tfs>},
    {"las", "", "one at a time, who has had least of the device first", make<Las>},
    {"las", "n", "as las, but <n> at a time (1 to 48), where programs run together on a device", make_las},
    {"token", "", "one at a time, by the fractions of the device that jobs request and are limited to", make<Token>},
    {"token:overlap", "", "as token, but the next does not wait for what the last has in flight", make<Token, true>},
    deadlines<Fifo>("fifo", "one at a time, who has waited longest first, until its burst ends"),
    deadlines<Priority, Revocation::kOff>("priority:off", "requests of user-facing jobs first, when a burst has ended"),
    deadlines<Priority, Revocation::kSoft>("priority:soft", "as priority:off, but batch jobs are withdrawn for them"),
    deadlines<Priority, Revocation::kHard>("priority:hard",
                                           "as priority:soft, and terminated where a request would else be late"),
    bounding_batch(deadlines<Share>("priority:share", "requests at any time, beside batch jobs on a part of the SMs")),
    deadlines<Elastic, Revocation::kOff>("elastic:off", "as many devices kept for requests as they need"),
    deadlines<Elastic, Revocation::kSoft>("elastic:soft", "as elastic:off, but batch jobs there are withdrawn"),
    deadlines<Elastic, Revocation::kHard>("elastic:hard",
                                          "as elastic:soft, and terminated where a request would else be late"),
};

std::string known() {
  std::string names;
  for (const DispatchEntry& entry : kDispatchTable) append(names, names.empty() ? "" : ", ", text_of(entry));
  return names;
}

// What `text` says behind the colon; none where it is not of the entry.
std::optional<std::string_view> argument_of(const DispatchEntry& entry, std::string_view text) {
  if (entry.argument.empty()) return entry.name == text ? std::optional(std::string_view()) : std::nullopt;
  if (!text.starts_with(entry.name) || text.substr(entry.name.size(), 1) != ":") return {};
  return text.substr(entry.name.size() + 1);
}

}  // namespace

std::span<const DispatchEntry> dispatch_table() {
  return kDispatchTable;
}

std::string text_of(const DispatchEntry& entry) {
  return entry.argument.empty() ? std::string(entry.name) : text(entry.name, ":<", entry.argument, ">");
}

Result<const DispatchEntry*> find_dispatch(std::string_view text) {
  const auto wrong = [&](ErrorCode code, const char* what) {
    return fail(code, "dispatch policy '%.*s': %s; known policies: %s", static_cast<int>(text.size()), text.data(),
                what, known().c_str());
  };
  for (const DispatchEntry& entry : kDispatchTable) {
    const auto argument = argument_of(entry, text);
    if (!argument) continue;
    if (const auto made = entry.make(*argument); !made) return wrong(made.error().code, made.error().text.c_str());
    return &entry;
  }
  return wrong(ErrorCode::kNotFound, "there is none of that name");
}

Result<std::unique_ptr<Dispatch>> make_dispatch(std::string_view text) {
  const auto entry = find_dispatch(text);
  if (!entry) return tl::unexpected(entry.error());
  return (*entry)->make(*argument_of(**entry, text));
}

}  // namespace heddle::policy
