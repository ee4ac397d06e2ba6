#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/daemon_link.h"
#include "core/job_class.h"

namespace heddle::cli {

// A job that heddled knows: its sessions name it with the secret. It lives while the link that opened it does.
struct Job {
  uint64_t id = 0, secret = 0;
};
// What it asks for of a device's time; which of it counts depends on the dispatch policy.
struct DeviceShare {
  double weight = 1;
  double share = 0, limit = 1;  // parts of the device
  std::string app;              // what jobs of its kind are known by; empty: the program's file name
  std::string job_class{kBatch};
  std::optional<Duration> slo;  // of a user-facing job's requests; none: heddled's default
};
struct JobRequest {
  std::string name;
  Bytes memory;  // budget over all its sessions; 0: the largest device
  DeviceShare share;
};
// Outlasts a restart of heddled; `link` then leads to the new one.
Result<Job> open_job(DaemonLink& link, const JobRequest& request);

struct TenantOptions {
  std::vector<std::string> command;
  Job job;
  std::string output_file;  // stdout and stderr go there; empty: inherited
  std::string directory;    // working directory; empty: inherited
  bool own_process_group = false;
  bool check = false;   // kernels' accesses are checked (HEDDLE_CHECK)
  std::string managed;  // where managed memory lives, host or device (HEDDLE_MANAGED); empty: as heddled has it
};

// Starts a program with heddle's CUDA runtime in place of NVIDIA's: LD_LIBRARY_PATH for programs that link it shared,
// LD_PRELOAD for those that have it inside. Returns the child's pid once it has executed the program; if that fails,
// the error says why, and ErrorCode::kNotFound or kPermission tells which.
Result<pid_t> start_tenant(const TenantOptions& options);

}  // namespace heddle::cli
