// heddle cancel: ends a job's work on the devices and the program that `heddle run` started for it.

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/output.h"
#include "protocol/socket_path.h"

namespace heddle::cli {
namespace {

int cancel(uint64_t job) {
  auto link = DaemonLink::connect(protocol::control_socket_path());
  if (!link) return report(link.error());
  auto answer = link->request({{"command", "cancel"}, {"job", job}});
  if (!answer) return report(answer.error());
  return kSuccess;
}

}  // namespace

void add_cancel_command(CLI::App& app, Action& chosen) {
  auto job = std::make_shared<uint64_t>(0);
  CLI::App* command = app.add_subcommand("cancel", "End a job");
  command->add_option("job", *job, "The job's number, as 'heddle ps' shows it")->required();
  command->callback([job, &chosen] { chosen = [job] { return cancel(*job); }; });
}

}  // namespace heddle::cli
