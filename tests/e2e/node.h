#pragma once

// A machine of one's own for a test: a private heddled in a fresh directory, with the configuration given, and the
// heddle command to use it. Everything is gone, and known to be gone, when the node is.

#include <sys/types.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"

namespace heddle::e2e {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

struct Finished {
  int status = -1;  // 128 + n: ended by signal n; -1: it had to be killed after the limit
  std::string out, err;
};

// A child of the test in the background; killed and reaped if it is still there at the end.
class Process {
 public:
  Process(const Arguments& command, const std::map<std::string, std::string>& environment);
  Process(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  void signal(int signal) const;
  bool running();
  std::string out() const;  // what it has written so far
  std::string err() const;
  // Waits for its end, up to `limit`.
  Finished wait(Duration limit = std::chrono::seconds(120));

 private:
  pid_t pid_ = -1;
  std::string out_path_, err_path_;
  int status_ = 0;
  bool reaped_ = false;
};

// The case of the program `managed` that a sanitizer's own handling of signals does not let be: ThreadSanitizer's
// sigaction stands before heddle's; AddressSanitizer ends a program in its own way.
#if defined(__SANITIZE_THREAD__)
inline constexpr const char* kManagedLeftOut = "-own_handler";
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr const char* kManagedLeftOut = "-ends_as_it_would";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr const char* kManagedLeftOut = "-ends_as_it_would";
#else
inline constexpr const char* kManagedLeftOut = "";
#endif
#else
inline constexpr const char* kManagedLeftOut = "";
#endif

class Node {
 public:
  // Starts heddled with this configuration (TOML); `ready` is false, and `why` says why, if it did not come up.
  explicit Node(const std::string& config = default_config(), const std::string& policy = "mgb-warps");
  ~Node();
  Node(const Node&) = delete;

  bool ready() const { return why_.empty(); }
  const std::string& why() const { return why_; }
  const std::string& directory() const { return directory_; }
  std::string socket() const { return directory_ + "/control"; }

  // Two small software devices that do not pace: for tests of what happens, not of how long it takes.
  static std::string default_config();

  // One GPU of the driver for tests (HEDDLE_CUDA_LIBRARY), in time slices.
  static std::string gpu_config();

  // Waits until a device has a warm worker: a GPU's first one says which addresses it leaves to programs.
  bool warm();

  // `heddle` with these arguments.
  Finished heddle(const Arguments& arguments, Duration limit = std::chrono::seconds(120));
  Process spawn(const Arguments& arguments);
  // `heddle run -- command`.
  Finished run(const Arguments& command, Duration limit = std::chrono::seconds(120));
  Process spawn_run(const Arguments& command);
  // `heddle run -- command` by somebody who is limited: "-t 60", as the shell's ulimit takes it.
  Finished run_under(const std::string& ulimit, const Arguments& command);

  // heddled's answer to a command, {} where it does not answer.
  Json ask(const Json& command);
  // Polls until `holds`, for up to `limit`; false if it never did.
  static bool eventually(const std::function<bool()>& holds, Duration limit = std::chrono::seconds(20));
  // No session, no task, no memory used on any device.
  bool empty();

  // Stops the worker of the session's task, or of the first session's, in the middle of work that its death would lose;
  // -1 where it has none. Between two launches nothing would be lost, and another worker would go on.
  pid_t stop_at_work(const Json& session = {});
  // Kills the worker of the first session's task, of that device of the program's if one is named, in the middle of
  // work that can be run again; -1 where it comes to none. `last`: was killed before, and may be named still.
  pid_t kill_at_work(pid_t last = 0, std::optional<uint32_t> virtual_device = {});

  // Stops all processes of the node for so long, as if their machine were suspended.
  void stand_still(Duration time);

  pid_t daemon_pid();
  pid_t vault_pid();
  std::vector<pid_t> worker_pids();
  std::vector<pid_t> keeper_pids();
  // Ends heddled and its vault properly, and tells whether anything of them is left behind.
  bool stop_cleanly();
  std::string log() const;

 private:
  // Stops a task's worker at a moment at which `wanted` holds of the task; -1 where none comes.
  static pid_t stop_worker(const std::function<Json()>& task, const std::function<bool(const Json&)>& wanted);
  std::map<std::string, std::string> environment() const;
  std::vector<pid_t> processes_of_node() const;
  std::vector<pid_t> running(const std::string& program) const;  // processes of the node that execute it

  std::string directory_, why_;
};

// A number of the environment's, by which somebody lengthens or repeats a test's run.
unsigned setting(const char* name, unsigned fallback);

// A workload's executable, or where it was not built (no nvcc) an empty string.
std::string workload(const std::string& name, bool static_runtime = false);

#define HEDDLE_NEEDS_WORKLOADS()                                   \
  if (::heddle::e2e::workload("vecadd").empty())                   \
  GTEST_SKIP() << "the workloads were not built: no nvcc on this " \
                  "machine"

}  // namespace heddle::e2e
