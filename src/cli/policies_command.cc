// heddle policies: what a daemon or a batch can be told to place by, and a daemon to dispatch by.

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"

namespace heddle::cli {
namespace {

int policies(bool as_json) {
  auto link = connect_or_start();
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "policies"}});
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
    return kSuccess;
  }
  const std::string current = string_of(*answer, "current");
  Table table({"POLICY", "", "PLACES A TASK"});
  for (const Json& policy : answer->value("policies", Json::array())) {
    const std::string name = string_of(policy, "name");
    const bool in_use = current == name || current.starts_with(name.substr(0, name.find('<')) + ":");
    table.add({name, in_use ? "*" : "", string_of(policy, "description")});
  }
  const Json dispatch = answer->value("dispatch", Json::object());
  const std::string dispatched = string_of(dispatch, "current");
  Table lending({"DISPATCH", "", "LETS PROGRAMS ISSUE WORK"});
  for (const Json& policy : dispatch.value("policies", Json::array())) {
    const std::string name = string_of(policy, "name");
    lending.add({name, dispatched == name ? "*" : "", string_of(policy, "description")});
  }
  print(table.text() + "* in use: " + current + "\n\n" + lending.text() + "* in use: " + dispatched + "\n");
  return kSuccess;
}

}  // namespace

void add_policies_command(CLI::App& app, Action& chosen) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("policies", "List the placement and dispatch policies");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback([as_json, &chosen] { chosen = [as_json] { return policies(*as_json); }; });
}

}  // namespace heddle::cli
