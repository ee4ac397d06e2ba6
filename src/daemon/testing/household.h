#pragma once

#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/spawn.h"
#include "daemon/testing/client.h"

namespace heddle::daemon::testing {

// A whole heddle in a directory of its own: real heddle-vault and heddled, workers without devices.
class Household {
 public:
  using Json = nlohmann::json;

  enum class Serves { kItsUser, kEverybody };
  // `config`: the TOML text. Everybody is served by root's heddle only.
  static Result<std::unique_ptr<Household>> start(const std::string& config, Serves serves = Serves::kItsUser);
  ~Household();

  const std::string& socket() const { return socket_; }
  const std::string& directory() const { return directory_; }
  Result<TestClient> client(uint64_t job = 0, uint64_t secret = 0) { return TestClient::open(socket_, job, secret); }
  // One command on a connection of its own; an answer of {"error": ...} is an Error.
  Result<Json> ask(const Json& command);
  // On an open connection.
  static Result<Json> ask(protocol::Socket& socket, const Json& command);

  pid_t vault() const { return vault_.pid; }
  pid_t heddled();
  // Processes of this household, heddle-vault's descendants by name.
  std::vector<pid_t> processes(const std::string& name) const;
  // Fails the test where `pid` is no process of its own: -1 and 0 would be many.
  void signal(pid_t pid, int number);
  void kill(pid_t pid) { signal(pid, SIGKILL); }

  // Asks until `condition(answer)` holds, and returns that answer. Fails the test when the time is over.
  Json wait_for(const std::string& command, const std::function<bool(const Json&)>& condition);
  // Until nothing is promised on any device, no worker is bound and only `sessions` are left. Fails as wait_for does.
  void wait_idle(size_t sessions = 0);
  // Until the process has ended, or heddled answers and is not `old`.
  void wait_for_end_or_answer(const Fd& process, pid_t old);
  // From now on workers end at their start, with this exit status, or no longer do.
  void fail_workers(bool fail, int status = 9);
  // From now on workers take so long to start.
  void slow_workers(std::chrono::milliseconds by) const;
  // SIGTERM, and the vault's exit status; -1 when it does not end.
  int stop();

 private:
  std::string directory_, socket_;
  Child vault_;
};

Result<Fd> open_pidfd(pid_t pid);

}  // namespace heddle::daemon::testing
