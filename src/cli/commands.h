#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace heddle::cli {

// Each subcommand lives in its own file: it declares its options on the app and leaves in `chosen` what to run when it
// was named. What runs returns heddle's exit status.
using Action = std::function<int()>;

void add_run_command(CLI::App& app, Action& chosen);
void add_batch_command(CLI::App& app, Action& chosen);
void add_ps_command(CLI::App& app, Action& chosen);
void add_top_command(CLI::App& app, Action& chosen);
void add_cancel_command(CLI::App& app, Action& chosen);
void add_suspend_commands(CLI::App& app, Action& chosen);
void add_devices_command(CLI::App& app, Action& chosen);
void add_policies_command(CLI::App& app, Action& chosen);
void add_sim_command(CLI::App& app, Action& chosen);
void add_replay_command(CLI::App& app, Action& chosen);
void add_doctor_command(CLI::App& app, Action& chosen);
void add_daemon_command(CLI::App& app, Action& chosen);

// heddle cc: becomes heddle-cc, which lies beside this program, with these arguments. Returns only where it cannot.
int compile(char** arguments);

// Exit statuses of heddle itself; those of a program that it ran are passed through.
inline constexpr int kSuccess = 0, kFailure = 1, kCannotRun = 127, kNotExecutable = 126, kWaitTimeout = 124;
// heddle run --check: the program ended with 0, and the checks found something.
inline constexpr int kCheckFound = 66;

}  // namespace heddle::cli
