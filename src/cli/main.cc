// heddle: the command. One file a subcommand; all of them talk to heddled through daemon_link.h.

#include <cstdio>
#include <cstring>

#include "cli/commands.h"

int main(int argc, char** argv) {
  using namespace heddle::cli;
  // The compiler's arguments are nvcc's: none of them is ours to read.
  if (argc > 1 && std::strcmp(argv[1], "cc") == 0) return compile(argv + 2);
  CLI::App app{
      "heddle shares the GPUs of this machine among programs that know nothing of each other.\n"
      "Start a CUDA program with 'heddle run -- ./program'; it needs no change.",
      "heddle"};
  app.set_version_flag("--version", HEDDLE_VERSION);
  app.require_subcommand(1);
  app.footer("'heddle SUBCOMMAND --help' explains each.");

  Action chosen;
  add_run_command(app, chosen);
  add_batch_command(app, chosen);
  add_ps_command(app, chosen);
  add_top_command(app, chosen);
  add_cancel_command(app, chosen);
  add_suspend_commands(app, chosen);
  add_devices_command(app, chosen);
  add_policies_command(app, chosen);
  add_sim_command(app, chosen);
  add_replay_command(app, chosen);
  add_doctor_command(app, chosen);
  add_daemon_command(app, chosen);
  app.add_subcommand("cc", "Compile a CUDA program as nvcc does, so that heddle knows its tasks before they run");

  try {
    app.parse(argc, argv);
    return chosen ? chosen() : kFailure;
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heddle: %s\n", error.what());
    return kFailure;
  }
}
