#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ids.h"
#include "daemon/spawn.h"

namespace heddle::daemon {

// NVIDIA's MPS for heddled's workers: a private control daemon for each GPU, with directories of its own, so that a
// fault on one GPU never concerns another, and nobody else's MPS is touched.
//
// A control daemon outlives heddled, because its server's clients do: its successor finds it by the number that stands
// in its directory. It ends when heddled is shut down.
class Mps {
 public:
  struct Options {
    std::string program;    // nvidia-cuda-mps-control; empty: it is not installed
    std::string directory;  // where the GPUs' directories go; workers must be able to reach it
    int output = -1;        // where the daemons' standard error goes
  };
  // Where the control program is, in the places where NVIDIA's installers put it and in $PATH. Empty: nowhere.
  static std::string find_control();

  explicit Mps(Options options) : options_(std::move(options)) {}

  bool installed() const { return !options_.program.empty(); }
  // Starts the GPU's control daemon, or takes over the one of a former life. kNotFound where MPS is not installed.
  Status start(DeviceId device, const std::string& uuid);
  bool serves(DeviceId device) const { return gpus_.contains(device); }
  std::vector<DeviceId> devices() const;
  // What a worker needs to be a client; of a GPU that MPS does not serve, what keeps it from being one.
  std::vector<std::string> environment(DeviceId device) const;
  // What keeps a worker from being one.
  static std::vector<std::string> outside() { return {"CUDA_MPS_PIPE_DIRECTORY=/nonexistent"}; }
  // What keeps a client's kernels to a part of the SMs (from 1 to 100).
  static std::string thread_percentage(uint32_t percent) {
    return "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=" + std::to_string(percent);
  }
  // NVIDIA's control program for the GPU's control daemon: it reads commands, a line each, and prints the answers.
  struct Speaker {
    Child program;
    Fd commands, answers;  // our ends; `answers` does not block
  };
  Result<Speaker> speak(DeviceId device) const;
  // Ends all of them, and takes their directories away.
  void end();

  // ---- For a recovery (mps_recovery.h): nothing here waits. All for a GPU that is served. ----

  // The GPU's control daemon.
  const Fd& control(DeviceId device) const { return gpus_.at(device).process; }
  // Its servers that run; server_numbers() is quicker, and sees only those that the control daemon knows.
  std::vector<Child> servers(DeviceId device) const;
  std::vector<pid_t> server_numbers(DeviceId device) const;
  // The control daemon has ended: starts another. It takes clients once is_ready().
  Status launch_again(DeviceId device);
  bool is_ready(DeviceId device) const;

 private:
  struct Gpu {
    std::string uuid, directory;
    pid_t pid = 0;
    Fd process;
  };
  bool adopt(Gpu& gpu) const;
  Status launch(Gpu& gpu) const;
  static Status await(const Gpu& gpu);
  static bool is_ready(const Gpu& gpu);
  static std::vector<Child> servers(const Gpu& gpu);
  static std::vector<std::string> variables(const Gpu& gpu);

  Options options_;
  std::map<DeviceId, Gpu> gpus_;
};

}  // namespace heddle::daemon
