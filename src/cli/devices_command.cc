// heddle devices: the pool, and how much of each device is promised.

#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"

namespace heddle::cli {
namespace {

// A software device without a slowdown is as fast as the host computes; a GPU is what it is.
std::string pace_of(const Json& device) {
  if (device.value("kind", "") != "software") return "-";
  return device.value("slowdown", 0.0) > 0 ? string_of(device, "slowdown") : "unpaced";
}

// Within how much time the device is to be had back from a batch job, and on how many revocations that rests.
std::string bound_of(const Json& device) {
  const Json revocation = device.value("revocation", Json());
  if (!revocation.is_object()) return "-";
  const std::string bound = to_string(Duration(static_cast<int64_t>(number_of(revocation, "bound_ns"))));
  return bound + " (" + string_of(revocation, "measured") + " measured)";
}

int devices(bool as_json) {
  auto link = connect_or_start();
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "devices"}});
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
    return kSuccess;
  }
  const Json all = answer->value("devices", Json::array());
  const bool revoked = std::any_of(all.begin(), all.end(), [](const Json& device) { return bound_of(device) != "-"; });
  std::vector<std::string> titles{"DEVICE",  "NAME",  "KIND",  "SMS",  "MEMORY",  "USED",
                                  "OUTSIDE", "WARPS", "TASKS", "WARM", "SLOWDOWN"};
  const bool eager =
      std::any_of(all.begin(), all.end(), [](const Json& each) { return number_of(each, "on_host") > 0; });
  if (eager) titles.emplace_back("ON HOST");
  if (revoked) titles.emplace_back("REVOKED IN");
  titles.emplace_back("STATE");
  Table table(titles);
  for (const Json& device : all) {
    std::vector<std::string> cells{string_of(device, "device"),
                                   string_of(device, "name"),
                                   string_of(device, "kind"),
                                   string_of(device, "sms"),
                                   bytes_of(device, "memory"),
                                   bytes_of(device, "used"),
                                   bytes_of(device, "outside"),
                                   string_of(device, "warps"),
                                   string_of(device, "tasks"),
                                   string_of(device, "warm_workers"),
                                   pace_of(device)};
    if (eager) cells.push_back(bytes_of(device, "on_host"));
    if (revoked) cells.push_back(bound_of(device));
    cells.push_back(string_of(device, "state", "ok"));
    table.add(cells);
  }
  print(table.text());
  const Json swap = answer->value("swap", Json::object());
  if (number_of(swap, "used") > 0)
    std::printf("Suspended jobs, idle programs and tasks that were launched eagerly have %s in swap space, of %s.\n",
                bytes_of(swap, "used").c_str(), bytes_of(swap, "limit").c_str());
  if (number_of(swap, "kept") > 0)
    std::printf("%s of swap space stay pinned for what leaves a GPU next.\n", bytes_of(swap, "kept").c_str());
  return kSuccess;
}

}  // namespace

void add_devices_command(CLI::App& app, Action& chosen) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("devices", "Show the devices of the pool");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback([as_json, &chosen] { chosen = [as_json] { return devices(*as_json); }; });
}

}  // namespace heddle::cli
