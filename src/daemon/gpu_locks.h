#pragma once

#include <string>
#include <vector>

#include "core/fd.h"

namespace heddle::daemon {

// Who shares which of the machine's GPUs: two heddleds, of two users perhaps, would both promise the same memory. A
// lock file for each GPU stands in a directory that every user can write to; the lock ends with the process.
class GpuLocks {
 public:
  explicit GpuLocks(std::string directory) : directory_(std::move(directory)) {}

  // kPermission with the process that has it where another heddled shares the GPU.
  Status take(const std::string& uuid);

 private:
  std::string directory_;  // empty: nothing is locked
  std::vector<Fd> held_;
};

}  // namespace heddle::daemon
