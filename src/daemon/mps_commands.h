#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/log.h"
#include "daemon/event_loop.h"
#include "daemon/mps.h"

namespace heddle::daemon {

// Commands for the control daemons of GPUs' MPS, for each GPU one after the other, given through NVIDIA's control
// program. That stays running, because
// - starting it takes 2 ms, and a command without a client to end 0.2 ms (docs/results/2026-11-26-gpu.md);
// - while a control daemon speaks to one program it refuses every other. Of clients that were to be taken off the GPU
//   at the same time, each through a program of its own, only one was; the others were killed with work under way,
//   which ends every client's work.
//
// A program that has ended is replaced, and its command given again, until the command's time is up. Answers are
// numbers; what else it says is logged.
class MpsCommands {
 public:
  // Whether there was an answer in time; from the loop.
  using Answered = std::function<void(bool in_time)>;

  // The clock is the loop's.
  MpsCommands(EventLoop& loop, const Clock& clock, const Mps& mps, std::shared_ptr<spdlog::logger> log)
      : loop_(loop), clock_(clock), mps_(mps), log_(std::move(log)) {}
  MpsCommands(const MpsCommands&) = delete;
  MpsCommands& operator=(const MpsCommands&) = delete;
  ~MpsCommands();

  // Has the program ready, so that the first command need not wait for its start.
  void prepare(DeviceId device);
  // Takes a client off the GPU in the middle of its work, without harm to the others; it takes 7 ms. Whoever kills a
  // client without that ends the work of every client of the GPU. False where MPS has no server for the GPU.
  bool terminate(DeviceId device, pid_t client, Duration patience, const Answered& answered);
  // Asks something that any control daemon answers, with or without a server.
  void ask(DeviceId device, Duration patience, Answered answered);
  // What was not answered yet is nobody's business any more: all clients end.
  void forget(DeviceId device);

 private:
  struct Command {
    std::string text;
    TimePoint until{};
    Answered answered;
  };
  struct Speaker {
    Mps::Speaker at;
    EventLoop::Watch watch;
    std::string read;  // of a line that is not whole yet
  };
  struct Gpu {
    std::deque<Command> commands;  // the first one is with the speaker, if there is one
    std::optional<Speaker> speaker;
    TimePoint next_start{};
    EventLoop::Timer timer;
  };

  void give(DeviceId device, std::string text, Duration patience, Answered answered);
  void say(DeviceId device);
  Status start(DeviceId device);
  void heard(DeviceId device);
  void finish(DeviceId device, bool in_time);
  void replace(DeviceId device);
  void end(Gpu& gpu);
  void reap_program(pid_t pid);

  EventLoop& loop_;
  const Clock& clock_;
  const Mps& mps_;
  std::shared_ptr<spdlog::logger> log_;
  std::map<DeviceId, Gpu> gpus_;
  // Programs that were ended, until they have.
  struct Ending {
    Child program;
    EventLoop::Watch watch;
  };
  std::map<pid_t, Ending> ending_;
};

}  // namespace heddle::daemon
