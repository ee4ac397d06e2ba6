// heddle ps: what runs, where and why, and what waits for what.

#include <map>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "core/units.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

using Cells = std::vector<std::string>;

Cells row(Cells task, const Cells& session, const Cells& wait) {
  task.insert(task.end(), session.begin(), session.end());
  task.insert(task.end(), wait.begin(), wait.end());
  return task;
}

std::string seconds(double nanoseconds) {
  return stringf("%.1f s", nanoseconds / 1e9);
}

// What compiled tasks announced against what came, since the session began: declared, used of that, beside it, and
// extensions, of programs that nvcc compiled too.
Cells declarations(const Json& session) {
  const Json declared = session.value("declared", Json::object());
  const bool compiled = number_of(declared, "tasks") > 0;
  const auto bytes = [&](const char* key) { return compiled ? bytes_of(declared, key) : std::string("-"); };
  return {bytes("bytes"), bytes("used"), bytes("beside"), string_of(declared, "extensions", "-")};
}

// For how long its kernels, library calls and fills were on a device, and in how many bursts.
Cells measured(const Json& session) {
  const Json usage = session.value("usage", Json::object());
  return {seconds(number_of(usage, "busy_ns")), string_of(usage, "bursts", "-")};
}

// What its job asked for of a device: its weight, and its share and limit where it has any.
Cells asked(const Json& session, const std::map<std::string, Json>& jobs) {
  const auto found = jobs.find(string_of(session, "job"));
  if (found == jobs.end()) return {"-", "-"};
  const double share = number_of(found->second, "share"), limit = found->second.value("limit", 1.0);
  const bool any = share > 0 || limit < 1;
  return {stringf("%g", found->second.value("weight", 1.0)), any ? stringf("%g to %g", share, limit) : "-"};
}

// Of a user-facing job's requests, how many were met, and within what time the quickest 99 of 100 ended.
std::string requests(const Json& session, const std::map<std::string, Json>& jobs) {
  const auto found = jobs.find(string_of(session, "job"));
  const Json counted = found == jobs.end() ? Json() : found->second.value("requests", Json());
  if (!counted.is_object()) return "-";
  const uint64_t all = count_of(counted, "count");
  const std::string met =
      stringf("%lu of %lu met", static_cast<unsigned long>(count_of(counted, "met")), static_cast<unsigned long>(all));
  const Duration p99(static_cast<int64_t>(number_of(counted, "p99_ns")));
  return all == 0 ? met : met + ", p99 " + to_string(p99);
}

// Whether it has its device now, where devices are lent to one after the other, and for how long: "held 0.1 s".
std::string lease(const Json& task) {
  const auto found = task.find("lease");
  if (found == task.end()) return "-";
  return string_of(*found, "state") + " " + seconds(number_of(*found, "for_ns"));
}

// What part of the session's time on devices went into work that could not have been run again, from a hundredth on.
std::string unprotected(const Json& session) {
  const Json usage = session.value("usage", Json::object());
  const double busy = number_of(usage, "busy_ns"), part = number_of(usage, "unprotected_ns");
  return busy <= 0 || part < busy / 100 ? "" : stringf("; unprotected: %.0f %%", 100 * part / busy);
}

// With what keeps the task from outliving its worker, if anything does, and how often it was terminated for requests,
// or was to be and was not.
std::string reason_of(const Json& task) {
  std::string reason = string_of(task, "reason");
  const std::string obstacle = string_of(task, "not_revocable"), why = string_of(task, "not_terminated");
  if (!obstacle.empty()) reason += "; revocable: no (" + obstacle + ")";
  if (task.contains("apart")) reason += "; outside of MPS (not all of its work can be run again)";
  if (task.contains("terminations")) reason += "; terminated " + string_of(task, "terminations") + " times";
  if (task.contains("terminations_refused"))
    reason += "; drained instead " + string_of(task, "terminations_refused") + " times" +
              (why.empty() ? "" : " (" + why + ")");
  return reason;
}

// Of a task that heddled itself has taken off its device, with the reason: "swapped (idle)". Of one that was launched
// eagerly, with what of its memory is not on its device: "running (48 MiB on host)".
std::string state_of(const Json& task) {
  const std::string state = string_of(task, "state"), gives_way = string_of(task, "gives_way");
  if (!gives_way.empty()) return state + " (" + gives_way + ")";
  return number_of(task, "on_host") > 0 ? state + " (" + bytes_of(task, "on_host") + " on host)" : state;
}

// One line a task; a session without one gets a line of its own. What belongs to the session stands in its first line.
void add_rows(Table& table, const Json& session, const std::map<std::string, Json>& jobs) {
  const std::string job = string_of(session, "job"), id = string_of(session, "session"),
                    pid = string_of(session, "pid");
  const std::string program = string_of(session, "program");
  Cells once = declarations(session);
  const Cells used = measured(session);
  once.insert(once.end(), used.begin(), used.end());
  const Cells share = asked(session, jobs);
  once.insert(once.end(), share.begin(), share.end());
  once.push_back(requests(session, jobs));
  const auto tasks = session.find("tasks");
  if (tasks == session.end() || tasks->empty()) {
    table.add(row({job, id, pid, program, "idle", "-", "-", "0 B"}, once, {"-", ""}));
    return;
  }
  for (const Json& task : *tasks) {
    const std::string state = state_of(task), lost = &task == &tasks->front() ? unprotected(session) : "";
    table.add(row({job, id, pid, program, state, string_of(task, "device", "-"), lease(task), bytes_of(task, "memory")},
                  once, {seconds(number_of(task, "waited_ns")), reason_of(task) + lost}));
    once.assign(once.size(), "");
  }
}

int ps(bool as_json) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  auto answer = link->ps();
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
    return kSuccess;
  }
  Table table({"JOB", "SESSION", "PID", "PROGRAM", "STATE", "DEVICE", "LEASE", "MEMORY", "DECLARED", "USED", "BESIDE",
               "EXTENSIONS", "BUSY", "BURSTS", "WEIGHT", "SHARE", "REQUESTS", "WAITED", "WHY"});
  std::map<std::string, Json> jobs;
  for (const Json& job : answer->value("jobs", Json::array())) jobs[string_of(job, "job")] = job;
  for (const Json& session : answer->value("sessions", Json::array())) add_rows(table, session, jobs);
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
