// heddle ps: what runs, where and why, and what waits for what.

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "core/units.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

std::string seconds(double nanoseconds) {
  return stringf("%.1f s", nanoseconds / 1e9);
}

// One line a task; a session without one gets a line of its own.
void add_rows(Table& table, const Json& session) {
  const std::string job = string_of(session, "job"), id = string_of(session, "session"),
                    pid = string_of(session, "pid");
  const std::string program = string_of(session, "program");
  const auto tasks = session.find("tasks");
  if (tasks == session.end() || tasks->empty()) {
    table.add({job, id, pid, program, "idle", "-", "0 B", "-", ""});
    return;
  }
  for (const Json& task : *tasks) {
    const std::string state = string_of(task, "state");
    table.add({job, id, pid, program, state, string_of(task, "device", "-"), bytes_of(task, "memory"),
               seconds(number_of(task, "waited_ns")), string_of(task, "reason")});
  }
}

int ps(bool as_json) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "ps"}});
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
    return kSuccess;
  }
  Table table({"JOB", "SESSION", "PID", "PROGRAM", "STATE", "DEVICE", "MEMORY", "WAITED", "WHY"});
  for (const Json& session : answer->value("sessions", Json::array())) add_rows(table, session);
  print(table.empty() ? "nothing runs\n" : table.text());
  return kSuccess;
}

}  // namespace

void add_ps_command(CLI::App& app, Action& chosen) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("ps", "Show jobs, their tasks, and why each is where it is");
  command->add_flag("--json", *as_json, "As JSON");
  command->callback([as_json, &chosen] { chosen = [as_json] { return ps(*as_json); }; });
}

}  // namespace heddle::cli
