// heddle policies: what a daemon or a batch can be told to place by, and a daemon to dispatch by; and what the one that
// runs does.

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "policy/dispatch/table.h"
#include "policy/placement/table.h"

namespace heddle::cli {
namespace {

struct InUse {
  std::string placement, dispatch;  // empty: no heddled runs
  std::string why;                  // it is not known
};

InUse ask_what_is_in_use() {
  auto link = connect_to_running();
  auto answer = link ? link->request({{"command", "policies"}}) : tl::unexpected(link.error());
  if (!answer) return {{}, {}, answer.error().text};
  return {string_of(*answer, "current"), string_of(answer->value("dispatch", Json::object()), "current"), {}};
}

// As JSON shows it; nothing is current where no heddled runs.
Json list_of(const InUse& in_use) {
  const auto current = [](const std::string& name) { return name.empty() ? Json() : Json(name); };
  Json placements = Json::array(), dispatches = Json::array();
  for (const auto& entry : policy::placement_table()) {
    std::string name(entry.name);
    if (!entry.argument.empty()) name += ":<" + std::string(entry.argument) + ">";
    placements.push_back({{"name", name}, {"description", std::string(entry.description)}});
  }
  for (const auto& entry : policy::dispatch_table()) {
    dispatches.push_back({{"name", policy::text_of(entry)}, {"description", std::string(entry.description)}});
  }
  return {{"current", current(in_use.placement)},
          {"policies", placements},
          {"dispatch", {{"current", current(in_use.dispatch)}, {"policies", dispatches}}}};
}

// "cg:3" is of the entry "cg:<ratio>".
bool is_of(const std::string& current, const std::string& name) {
  const size_t argument = name.find('<');
  return argument == std::string::npos ? current == name : current.starts_with(name.substr(0, argument));
}

std::string table_of(const char* title, const char* what, const Json& policies, const std::string& current) {
  Table table({title, "", what});
  for (const Json& policy : policies) {
    const std::string name = string_of(policy, "name");
    table.add({name, is_of(current, name) ? "*" : "", string_of(policy, "description")});
  }
  return table.text() + (current.empty() ? "" : "* in use: " + current + "\n");
}

int policies(bool as_json) {
  const InUse in_use = ask_what_is_in_use();
  const Json list = list_of(in_use);
  if (as_json) {
    print_json(list);
    return kSuccess;
  }
  print(table_of("POLICY", "PLACES A TASK", list["policies"], in_use.placement) + "\n" +
        table_of("DISPATCH", "LETS PROGRAMS ISSUE WORK", list["dispatch"]["policies"], in_use.dispatch));
  if (!in_use.why.empty()) print("None is in use, as no heddled answers: " + in_use.why + "\n");
  return kSuccess;
}

}  // namespace

void add_policies_command(CLI::App& app, Action& chosen) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("policies", "List the placement and dispatch policies, and which the running heddled has");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback([as_json, &chosen] { chosen = [as_json] { return policies(*as_json); }; });
}

}  // namespace heddle::cli
