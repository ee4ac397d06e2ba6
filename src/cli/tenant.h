#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/daemon_link.h"

namespace heddle::cli {

// A job that heddled knows: its sessions name it with the secret. It lives while the link that opened it does.
struct Job {
  uint64_t id = 0, secret = 0;
};
struct JobRequest {
  std::string name;
  Bytes memory;  // budget over all its sessions; 0: the largest device
  // Of devices that are lent to one program after the other; what is left out is heddled's default.
  std::optional<double> weight = {}, request = {}, limit = {};
};
// Outlasts a restart of heddled; `link` then leads to the new one.
Result<Job> open_job(DaemonLink& link, const JobRequest& request);

struct TenantOptions {
  std::vector<std::string> command;
  Job job;
  std::string output_file;  // stdout and stderr go there; empty: inherited
  std::string directory;    // working directory; empty: inherited
  bool own_process_group = false;
  bool check = false;  // kernels' accesses are checked (HEDDLE_CHECK)
};

// Starts a program with heddle's CUDA runtime in place of NVIDIA's: LD_LIBRARY_PATH for programs that link it shared,
// LD_PRELOAD for those that have it inside. Returns the child's pid once it has executed the program; if that fails,
// the error says why, and ErrorCode::kNotFound or kPermission tells which.
Result<pid_t> start_tenant(const TenantOptions& options);

}  // namespace heddle::cli
