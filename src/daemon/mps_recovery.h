#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/log.h"
#include "daemon/event_loop.h"
#include "daemon/mps.h"
#include "daemon/mps_commands.h"

namespace heddle::daemon {

// Starts the MPS of a GPU anew after a fault. Under MPS a fault is every client's, and the server admits nobody while a
// client of the time before is left: also one whose program had nothing to do and so never learned of the fault.
//
//   begin() -> clients end -> servers end -> the control daemon answers, or is replaced -> recovered
//
// Each step has a time limit, behind which the next begins all the same. One recovery of a GPU at a time. Nothing
// blocks: processes are watched by descriptor, and signalled through it, so that no number can be another process's by
// then.
class MpsRecovery {
 public:
  // What whoever owns the clients is told, from the loop.
  struct Told {
    std::function<void(DeviceId)> control_ended;  // by itself: clients cannot go on for long
    std::function<void(DeviceId)> recovered;      // clients may be started again
  };

  MpsRecovery(EventLoop& loop, Mps& mps, MpsCommands& commands, std::shared_ptr<spdlog::logger> log, Told told)
      : loop_(loop), mps_(mps), commands_(commands), log_(std::move(log)), told_(std::move(told)) {}
  MpsRecovery(const MpsRecovery&) = delete;
  MpsRecovery& operator=(const MpsRecovery&) = delete;

  // From now on the end of a control daemon is noticed.
  void watch_controls();
  // False where there is nothing to begin: MPS does not serve the GPU, or its recovery is under way. The caller ends
  // the clients, and says when they are gone.
  bool begin(DeviceId device);
  void clients_gone(DeviceId device);
  bool under_way(DeviceId device) const { return recoveries_.contains(device); }
  // heddled ends: nothing is started any more.
  void stop();

 private:
  enum class Step { kClients, kServers, kControl };
  struct Process {
    Child child;
    EventLoop::Watch watch;
  };
  struct Recovery {
    Step step = Step::kClients;
    TimePoint began{};
    std::vector<Process> servers;
    EventLoop::Watch control;  // its end
    uint64_t question = 0;     // that the control daemon has not answered yet
    EventLoop::Timer timer;
  };

  Recovery* in_step(DeviceId device, Step step);
  void watch_control(DeviceId device);
  void end_servers(DeviceId device);
  void kill_servers(DeviceId device);
  void server_ended(DeviceId device);
  void ask_control(DeviceId device);
  void asked(DeviceId device, uint64_t question, bool answered);
  void replace_control(DeviceId device, const char* why);
  void launch_control(DeviceId device);
  void await_control(DeviceId device);
  void finish(DeviceId device);

  EventLoop& loop_;
  Mps& mps_;
  MpsCommands& commands_;
  std::shared_ptr<spdlog::logger> log_;
  Told told_;
  std::map<DeviceId, Recovery> recoveries_;
  std::map<DeviceId, EventLoop::Watch> controls_;  // of GPUs without a recovery
  std::map<DeviceId, TimePoint> launched_;         // control daemons, in recoveries
  uint64_t last_question_ = 0;
};

}  // namespace heddle::daemon
