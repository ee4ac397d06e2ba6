// heddle-vault: the process to start. It opens the sockets, starts heddled, and keeps for it what must outlive it.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "daemon/notes.h"
#include "daemon/process_limits.h"
#include "daemon/programs.h"
#include "daemon/runtime_directory.h"
#include "daemon/vault/background.h"
#include "daemon/vault/vault.h"

namespace {

using namespace heddle;
using namespace heddle::daemon;

struct Options {
  std::string config, socket, libexec, policy;
  bool system = false, background = false;
  uint32_t restarts = 5;
  int adopt = -1, process = -1;
};

int complain(const Error& error) {
  std::fprintf(stderr, "heddle-vault: %s\n", error.text.c_str());
  return 1;
}

std::vector<std::string> heddled_arguments(const Options& options, const Places& places) {
  std::vector<std::string> arguments{"--socket", places.control, "--restarts", std::to_string(options.restarts)};
  if (options.system) arguments.push_back("--system");
  if (!options.config.empty()) arguments.insert(arguments.end(), {"--config", options.config});
  if (!options.policy.empty()) arguments.insert(arguments.end(), {"--policy", options.policy});
  if (!options.libexec.empty()) arguments.insert(arguments.end(), {"--libexec", options.libexec});
  return arguments;
}

Status open_listeners(Vault& vault, const Places& places) {
  HEDDLE_TRY(prepare_directory(places));
  const mode_t mode = places.shared ? 0666 : 0600;
  uint64_t key = 0;
  for (const std::string& path : {places.control, places.worker}) {
    auto listener = protocol::listen_at(path, mode);
    if (!listener) return tl::unexpected(std::move(listener).error());
    vault.keep(static_cast<uint64_t>(NoteKind::kListener), ++key, path, std::move(*listener));
  }
  return {};
}

int run(const Options& options) {
  const auto heddled = find_program("heddled", options.libexec);
  if (!heddled) return complain(heddled.error());
  if (const Status raised = raise_process_limits(); !raised) return complain(raised.error());
  const Places places = choose_places(options.socket, options.system);
  Vault vault({*heddled, heddled_arguments(options, places), options.restarts});
  const Status ready = options.adopt >= 0 ? vault.adopt(protocol::Socket(Fd(options.adopt)), Fd(options.process))
                                          : open_listeners(vault, places);
  if (!ready) return complain(ready.error());
  if (!options.background) return vault.run();
  auto background = go_to_background(places.control + ".log");
  if (!background) return complain(background.error());
  if (background->exit_status) return *background->exit_status;
  vault.on_first_deposit([&] { background->report(); });
  return vault.run();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Starts heddled, which shares the GPUs of this machine among CUDA programs, and keeps it going: should heddled "
      "crash, its successor gets back every session and its memory. Ends with SIGTERM or `heddle daemon stop`."};
  Options options;
  app.add_option("--config", options.config, "configuration (TOML); without it two software devices")
      ->check(CLI::ExistingFile);
  app.add_option("--socket", options.socket,
                 "where clients connect (default: $HEDDLE_SOCKET, else the user's runtime directory)");
  app.add_option("--policy", options.policy, "placement policy, over the configuration's");
  app.add_flag("--background", options.background,
               "return once heddled answers; the log goes to a file beside the socket");
  app.add_flag("--system", options.system, "serve every user, at /run/heddle/control");
  app.add_option("--libexec", options.libexec, "directory of heddle's programs (default: beside this one)");
  app.add_option("--restarts", options.restarts, "give up when heddled dies more often than this within a minute")
      ->capture_default_str();
  auto* adopt =
      app.add_option("--adopt", options.adopt, "by heddled: descriptor of its socket, to follow a vault that died")
          ->group("");
  app.add_option("--process", options.process, "by heddled: descriptor of its process")->group("")->needs(adopt);
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
