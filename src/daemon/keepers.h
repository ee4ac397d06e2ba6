#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "daemon/config.h"
#include "daemon/spawn.h"
#include "protocol/socket.h"

namespace heddle::daemon {

// What a process needs to see one GPU and no other: "NAME=value" each.
std::vector<std::string> gpu_environment(const std::string& uuid);

// The keepers of the pool's GPUs: starts them, asks them for memory, and starts another where one has died. Nothing is
// lost with a keeper: the descriptors that it gave keep the memory.
//
// An answer takes well under a millisecond (HARDWARE.md: 38 us to create a GiB, 0.3 ms to clear it), so heddled waits
// for it; a keeper that does not answer within kPatience is ended.
class Keepers {
 public:
  // `program`: heddle-keeper's path; empty where it is not installed. `output`: where its standard error goes.
  Keepers(std::string program, int output) : program_(std::move(program)), output_(output) {}
  ~Keepers();

  // Starts the keeper of a GPU ahead of its first use.
  Status start(DeviceId device, const std::string& uuid);
  // Zeroed device memory. kOutOfMemory where the GPU has no more.
  Result<Fd> allocate(DeviceId device, const std::string& uuid, Bytes size);

  // The process that keeps the GPU now; 0 where there is none. For tests and for `heddle devices`.
  pid_t process(DeviceId device) const;

 private:
  struct Keeper {
    Child child;
    protocol::Socket socket;
  };
  Result<Keeper*> running(DeviceId device, const std::string& uuid);
  Result<Fd> ask(Keeper& keeper, Bytes size);
  void end(DeviceId device);

  std::string program_;
  int output_;
  std::map<DeviceId, Keeper> keepers_;
};

}  // namespace heddle::daemon
