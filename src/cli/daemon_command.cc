// heddle daemon start | stop | status: the user's own heddled, by hand.

#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

constexpr Duration kStopLimit = std::chrono::seconds(20);
constexpr Duration kStopPoll = std::chrono::milliseconds(20);

int start(const DaemonStart& how) {
  const std::string path = protocol::control_socket_path();
  if (DaemonLink::connect(path)) {
    std::printf("heddled listens at %s already\n", path.c_str());
    return kSuccess;
  }
  if (auto started = start_daemon(path, how); !started) return report(started.error());
  std::printf("heddled listens at %s\n", path.c_str());
  return kSuccess;
}

int stop() {
  const std::string path = protocol::control_socket_path();
  auto link = DaemonLink::connect(path);
  if (!link) {
    std::printf("no heddled listens at %s\n", path.c_str());
    return kSuccess;
  }
  if (auto answer = link->request({{"command", "shutdown"}}); !answer) return report(answer.error());
  for (Duration waited{}; waited < kStopLimit; waited += kStopPoll) {
    if (!DaemonLink::connect(path)) return kSuccess;
    std::this_thread::sleep_for(kStopPoll);
  }
  return report({ErrorCode::kTimeout, "heddled at '" + path + "' still answers after " + to_string(kStopLimit)});
}

int status(bool as_json) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "status"}});
  if (!answer) return report(answer.error());
  if (as_json) {
    print_json(*answer);
    return kSuccess;
  }
  Table table({"", ""});
  for (const auto& [key, value] : answer->items())
    table.add({key, value.is_string() ? value.get<std::string>() : json_text(value)});
  print(table.text());
  return kSuccess;
}

}  // namespace

void add_daemon_command(CLI::App& app, Action& chosen) {
  auto how = std::make_shared<DaemonStart>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("daemon", "Start, stop or look at this user's heddled");
  command->require_subcommand(1);
  CLI::App* starting = command->add_subcommand("start", "Start it in the background");
  starting->add_option("--config", how->config, "Configuration file (TOML)")->check(CLI::ExistingFile);
  starting->add_option("--policy", how->policy, "Placement policy, as 'heddle policies' lists them");
  starting->add_option("--restarts", how->restarts, "Give up when heddled dies more often than this within a minute")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  starting->callback([how, &chosen] { chosen = [how] { return start(*how); }; });
  CLI::App* stopping = command->add_subcommand("stop", "End it, and what runs under it");
  stopping->callback([&chosen] { chosen = stop; });
  CLI::App* asking = command->add_subcommand("status", "Show version, uptime, policy and sockets");
  asking->add_flag("--json", *as_json, "As JSON");
  asking->callback([as_json, &chosen] { chosen = [as_json] { return status(*as_json); }; });
}

}  // namespace heddle::cli
