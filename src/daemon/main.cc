// heddled: the daemon itself. heddle-vault starts it; started by hand it becomes heddle-vault, which starts it.

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "daemon/daemon.h"
#include "daemon/gpus.h"
#include "daemon/process_limits.h"
#include "daemon/programs.h"
#include "daemon/spawn.h"

namespace {

using namespace heddle;
using namespace heddle::daemon;

struct Options {
  std::string config, socket, libexec, policy;
  bool system = false;
  int vault = -1;
  uint32_t restarts = 5;
};

int complain(const Error& error) {
  std::fprintf(stderr, "heddled: %s\n", error.text.c_str());
  return 2;
}

Result<Config> read_config(const Options& options) {
  Config config = default_config();
  if (!options.config.empty()) {
    auto loaded = load_config(options.config);
    if (!loaded) return loaded;
    config = std::move(*loaded);
  }
  if (!options.policy.empty()) config.policy = options.policy;
  // A service for everybody does not run tenants' code as itself.
  if (options.system && config.worker_user.empty() && config.worker_uids.count == 0 && ::geteuid() == 0)
    config.worker_user = "nobody";
  return config;
}

std::vector<std::string> vault_arguments(const Options& options, const Places& places) {
  std::vector<std::string> arguments{"--socket", places.control, "--restarts", std::to_string(options.restarts)};
  if (options.system) arguments.push_back("--system");
  if (!options.config.empty()) arguments.insert(arguments.end(), {"--config", options.config});
  if (!options.policy.empty()) arguments.insert(arguments.end(), {"--policy", options.policy});
  if (!options.libexec.empty()) arguments.insert(arguments.end(), {"--libexec", options.libexec});
  return arguments;
}

int become_vault(const Options& options, const Places& places) {
  auto program = find_program("heddle-vault", options.libexec);
  if (!program) return complain(program.error());
  std::vector<std::string> arguments = vault_arguments(options, places);
  std::vector<char*> pointers{program->data()};
  for (std::string& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  ::execv(program->c_str(), pointers.data());
  return complain({ErrorCode::kSystem, "cannot start " + *program});
}

// Starts vaults for a heddled whose vault died. A vault that it started before is ended first: two would fight.
class VaultStarter {
 public:
  VaultStarter(std::string program, std::vector<std::string> arguments)
      : program_(std::move(program)), arguments_(std::move(arguments)) {}

  Result<protocol::Socket> start() {
    if (child_.pidfd) {
      kill_process(child_.pidfd, SIGKILL);
      ::waitpid(child_.pid, nullptr, 0);
    }
    auto ends = protocol::socket_pair();
    if (!ends) return tl::unexpected(std::move(ends).error());
    const Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    if (!self) return fail_errno(-1, "cannot open a pidfd of heddled");
    SpawnOptions options;
    options.program = program_;
    options.arguments = arguments_;
    options.arguments.insert(options.arguments.end(), {"--adopt", "3", "--process", "4"});
    options.descriptors = {ends->second.get(), self.get()};
    auto child = spawn(options);
    if (!child) return tl::unexpected(std::move(child).error());
    child_ = std::move(*child);
    return std::move(ends->first);
  }

 private:
  std::string program_;
  std::vector<std::string> arguments_;
  Child child_;
};

// SIGTERM and SIGINT end heddled in order.
Result<EventLoop::Watch> watch_signals(Daemon& daemon, const Fd& signals) {
  return daemon.loop().watch(signals.get(), EPOLLIN, [&daemon, &signals](uint32_t) {
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof info) == sizeof info) daemon.shut_down();
  });
}

Fd block_signals() {
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGTERM);
  ::sigaddset(&mask, SIGINT);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);  // the vault passes it on as SIGTERM
  return Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
}

int run(const Options& options) {
  const Places places = choose_places(options.socket, options.system);
  if (options.vault < 0) return become_vault(options, places);
  auto config = read_config(options);
  if (!config) return complain(config.error());
  if (const Status opened = open_log(config->log_file, config->log_level); !opened) return complain(opened.error());
  const auto keeper = find_program("heddle-keeper", options.libexec);
  auto worker = find_program("heddle-worker", options.libexec);
  if (!worker) return complain(worker.error());
  auto vault = find_program("heddle-vault", options.libexec);
  if (!vault) return complain(vault.error());
  if (const Status raised = raise_process_limits(); !raised) return complain(raised.error());
  const Fd signals = block_signals();
  Fd output;
  if (!config->log_file.empty())
    output = Fd(::open(config->log_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));

  VaultStarter starter(*vault, vault_arguments(options, places));
  const MonotonicClock clock;
  const auto gpus = [&]() -> Result<std::string> { return keeper ? list_gpus(*keeper) : keeper; };
  auto daemon = Daemon::create({std::move(*config), places, *worker, keeper.value_or(std::string()), output.get(),
                                [&] { return starter.start(); }, gpus},
                               protocol::Socket(Fd(options.vault)), clock);
  if (!daemon) return complain(daemon.error());
  const auto watch = watch_signals(**daemon, signals);
  if (!watch) return complain(watch.error());
  const Status ended = (*daemon)->run();
  return ended ? 0 : complain(ended.error());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "heddled shares the GPUs of this machine among CUDA programs. heddle-vault starts it and keeps it going; started "
      "by hand it does so itself. Ends with SIGTERM or `heddle daemon stop`."};
  Options options;
  app.add_option("--config", options.config, "configuration (TOML); without it the GPUs, or two software devices");
  app.add_option("--socket", options.socket,
                 "where clients connect (default: $HEDDLE_SOCKET, else the user's runtime directory)");
  app.add_option("--policy", options.policy, "placement policy, over the configuration's");
  app.add_flag("--system", options.system, "serve every user, at /run/heddle/control");
  app.add_option("--libexec", options.libexec, "directory of heddle's programs (default: beside this one)");
  app.add_option("--restarts", options.restarts, "the vault gives up when heddled dies more often within a minute")
      ->capture_default_str();
  app.add_option("--vault", options.vault, "by heddle-vault: descriptor of its socket")->group("");
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
