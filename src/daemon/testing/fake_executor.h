#pragma once

#include <string>
#include <vector>

#include "daemon/executor.h"

namespace heddle::daemon::testing {

// Who serves tasks, without processes: writes down what it is told.
class FakeExecutor : public Executor {
 public:
  void session_opened() override {}
  void find(Session&, VirtualDevice&) override { told.push_back("find"); }
  void engage(Session&, VirtualDevice&) override { told.push_back("engage"); }
  void hand_over(Session&, VirtualDevice&) override { told.push_back("hand over"); }
  void suspend(const VirtualDevice&) override { told.push_back("suspend"); }
  void stop(VirtualDevice&) override { told.push_back("stop"); }
  void retire_kept(const Session&, const VirtualDevice&) override {}
  std::optional<ExecutorId> serving(const VirtualDevice&) const override {
    return serves ? std::optional(ExecutorId{1}) : std::nullopt;
  }
  pid_t process(const VirtualDevice&) const override { return 0; }
  bool takes_memory(const VirtualDevice& device) const override {
    return device.task && device.task->state == TaskState::kRunning;
  }
  void map_segment(VirtualDevice&, Segment& segment) override {
    told.push_back("segment " + std::to_string(segment.number));
  }
  void proceed(const VirtualDevice&) override { told.push_back("proceed"); }
  void map_host(Session&, const Segment&, bool) override {}
  void send_module(Session&, const Module&) override {}

  // What it was told since the last call.
  std::vector<std::string> take_told() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  bool serves = false;  // every virtual device
};

}  // namespace heddle::daemon::testing
