#include "cli/tenant.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "protocol/socket_path.h"

extern char** environ;

namespace heddle::cli {
namespace {

constexpr Duration kComesBack = std::chrono::seconds(10);  // a heddled that died and was started again
constexpr Duration kCallEvery = std::chrono::milliseconds(50);

// "NAME=front:rest", where rest is what the variable held.
std::string prepend(const char* name, const std::string& front) {
  const char* before = std::getenv(name);
  std::string value = std::string(name) + "=" + front;
  if (before && *before) value += std::string(":") + before;
  return value;
}

std::vector<std::string> tenant_environment(const TenantOptions& options, const std::string& libraries) {
  const Job& job = options.job;
  std::vector<std::string> replaced{
      "HEDDLE_SOCKET=" + protocol::control_socket_path(),
      stringf("HEDDLE_JOB=%lu:%lu", static_cast<unsigned long>(job.id), static_cast<unsigned long>(job.secret)),
      prepend("LD_LIBRARY_PATH", libraries), prepend("LD_PRELOAD", libraries + "/libheddle-redirect.so")};
  if (options.check) replaced.emplace_back("HEDDLE_CHECK=1");
  if (!options.managed.empty()) replaced.emplace_back("HEDDLE_MANAGED=" + options.managed);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string variable = *entry;
    const std::string name = variable.substr(0, variable.find('=') + 1);
    const bool is_replaced = std::any_of(replaced.begin(), replaced.end(),
                                         [&](const std::string& other) { return other.starts_with(name); });
    if (!is_replaced) environment.push_back(variable);
  }
  environment.insert(environment.end(), replaced.begin(), replaced.end());
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: only async-signal-safe calls. Reports errno through `report` and ends.
[[noreturn]] void become(const TenantOptions& options, char* const* argv, char* const* environment, int output,
                         int report) {
  for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (options.own_process_group) ::setpgid(0, 0);
  bool ready = output < 0 || (::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(output, STDERR_FILENO) >= 0);
  if (ready && !options.directory.empty()) ready = ::chdir(options.directory.c_str()) == 0;
  if (ready) ::execvpe(argv[0], argv, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

// Asks the successor of a heddled that died over the question. What the dead one did for this link went with the link.
Result<Json> ask_lastingly(DaemonLink& link, const Json& command) {
  auto answer = link.request(command);
  for (Duration waited{}; waited < kComesBack; waited += kCallEvery) {
    if (answer || answer.error().code != ErrorCode::kPeerDied) break;
    std::this_thread::sleep_for(kCallEvery);
    auto successor = DaemonLink::connect(protocol::control_socket_path());
    if (!successor) continue;
    link = std::move(*successor);
    answer = link.request(command);
  }
  return answer;
}

}  // namespace

Result<Job> open_job(DaemonLink& link, const JobRequest& request) {
  const DeviceShare& share = request.share;
  Json command{{"command", "job_open"},    {"name", request.name}, {"memory", request.memory.value},
               {"weight", share.weight},   {"share", share.share}, {"limit", share.limit},
               {"class", share.job_class}, {"app", share.app}};
  if (share.slo) command["slo_ns"] = static_cast<uint64_t>(std::max(*share.slo, Duration{}).count());
  auto answer = ask_lastingly(link, command);
  if (!answer) return tl::unexpected(std::move(answer).error());
  const auto job = answer->find("job"), secret = answer->find("secret");
  if (job == answer->end() || secret == answer->end() || !job->is_number_unsigned() || !secret->is_number_unsigned())
    return fail(ErrorCode::kProtocol, "heddled's answer names no job: %s", json_text(*answer).c_str());
  return Job{job->get<uint64_t>(), secret->get<uint64_t>()};
}

Result<pid_t> start_tenant(const TenantOptions& options) {
  auto libraries = library_directory();
  if (!libraries) return tl::unexpected(std::move(libraries).error());
  std::vector<std::string> command = options.command;
  std::vector<std::string> environment = tenant_environment(options, *libraries);
  const auto argv = pointers_to(command), envp = pointers_to(environment);

  Fd output;
  if (!options.output_file.empty()) {
    output.reset(::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!output) return fail_errno(-1, "cannot write '%s'", options.output_file.c_str());
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(-1, "cannot create a pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(-1, "cannot start '%s'", options.command[0].c_str());
  if (child == 0) become(options, argv.data(), envp.data(), output.get(), write_end.get());

  write_end.reset();  // an executed program closes the pipe: end of file then means success
  int error = 0;
  if (::read(read_end.get(), &error, sizeof error) != sizeof error) return child;
  ::waitpid(child, nullptr, 0);
  const ErrorCode code = error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kPermission;
  return fail(code, "cannot run '%s': %s", options.command[0].c_str(), std::strerror(error));
}

}  // namespace heddle::cli
