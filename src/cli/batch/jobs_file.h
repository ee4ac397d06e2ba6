#pragma once

#include <string>
#include <vector>

#include "cli/tenant.h"

namespace heddle::cli {

// One program of a batch. Jobs stand in the queue in the order of the file.
struct BatchJob {
  std::string name;                  // unique in the batch
  std::vector<std::string> command;  // a path with a slash is relative to the jobs file
  std::string kind;                  // a free label ("large"), for reports
  Bytes memory;                      // budget; 0: the largest device
  DeviceShare share;
};

// Reads
//   [[job]]
//   name = "srad-1"             # default: the program's name and the job's place in the queue
//   command = ["./srad_v2", "--size", "1024"]
//   kind = "large"
//   mem = "256M"
//   weight = 2                  # of a device's time: as heddle run has it
//   share = 0.3
//   class = "user-facing"       # and slo = "100ms": as heddle run has it
//   limit = 0.6
//   app = "srad"
//   count = 2                   # so many jobs of this kind, default 1
// Errors name file, line and key.
Result<std::vector<BatchJob>> read_jobs_file(const std::string& path);

}  // namespace heddle::cli
