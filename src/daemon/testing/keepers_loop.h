#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "daemon/keepers.h"

namespace heddle::daemon::testing {

// Keepers without a heddled: a loop and an event queue of their own, run until an answer is there.
class KeepersLoop {
 public:
  explicit KeepersLoop(std::string program) : keepers(*loop, events, std::move(program), -1) {}

  // Why the loop failed, or did nothing for a minute.
  template <class Reached>
  Status run_until(Reached reached) {
    while (take_events(), !reached()) HEDDLE_TRY(loop->run_once(std::chrono::seconds(60)));
    return {};
  }
  // Asks for memory and waits for it. No other request is under way.
  Result<Fd> allocate(DeviceId device, const std::string& uuid, Bytes size) {
    keepers.allocate({device, uuid, SessionId{1}, 1, 0, size});
    HEDDLE_TRY(run_until([&] { return !memory.empty(); }));
    Result<Fd> answer = std::move(memory.front().memory);
    memory.pop_front();
    return answer;
  }

  MonotonicClock clock;
  std::unique_ptr<EventLoop> loop = std::move(*EventLoop::create(clock));
  EventQueue events{[] {}};
  Keepers keepers;
  std::deque<MemoryAnswered> memory;  // answers, in order
  std::vector<CopyAnswered> copies;   // likewise
  int reports = 0;                    // of what a GPU has left

 private:
  void take_events() {
    events.begin_turn();
    while (auto event = events.next()) {
      if (auto* answer = std::get_if<MemoryAnswered>(&*event)) memory.push_back(std::move(*answer));
      if (auto* answer = std::get_if<CopyAnswered>(&*event)) copies.push_back(std::move(*answer));
      reports += std::holds_alternative<FreeMemoryReported>(*event);
    }
  }
};

}  // namespace heddle::daemon::testing
