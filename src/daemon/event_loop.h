#pragma once

// The one loop that everything in heddled runs on: descriptors that became ready, timers, and work put off to the end
// of the round. Single-threaded; handlers may add and remove any watch or timer, their own included.

#include <sys/epoll.h>

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/clock.h"
#include "core/fd.h"

namespace heddle::daemon {

class EventLoop {
 public:
  using Handler = std::function<void(uint32_t events)>;  // EPOLLIN and so on
  using Work = std::function<void()>;

  // A descriptor that is watched until this goes. The descriptor is borrowed and must outlive it.
  class Watch {
   public:
    Watch() = default;
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { reset(); }
    void reset();
    void set_events(uint32_t events);
    explicit operator bool() const { return loop_ != nullptr; }

   private:
    friend EventLoop;
    EventLoop* loop_ = nullptr;
    uint64_t id_ = 0;
    int fd_ = -1;
  };

  // Work that is due at some time; forgotten when this goes.
  class Timer {
   public:
    Timer() = default;
    Timer(Timer&& other) noexcept { *this = std::move(other); }
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { reset(); }
    void reset();
    explicit operator bool() const { return loop_ != nullptr; }

   private:
    friend EventLoop;
    EventLoop* loop_ = nullptr;
    std::pair<TimePoint, uint64_t> key_;
  };

  static Result<std::unique_ptr<EventLoop>> create(const Clock& clock);

  Result<Watch> watch(int fd, uint32_t events, Handler handler);
  Timer at(TimePoint when, Work work);
  Timer after(Duration delay, Work work) { return at(clock_.now() + delay, std::move(work)); }
  // At the end of this round: the place to destroy whoever is calling.
  void defer(Work work) { deferred_.push_back(std::move(work)); }

  // What must be done before anybody can act on what this process has decided: called before the loop sleeps, and by
  // Connection before it sends.
  void set_commit(Work commit) { commit_ = std::move(commit); }
  void commit() {
    if (commit_) commit_();
  }

  // Sleeps until something is ready or due, at most `patience` (without limit where negative), and serves it.
  Status run_once(Duration patience);
  // Rounds until stop().
  Status run();
  void stop() { stopped_ = true; }

  // When this process last resumed after a standstill, that is, a sleep that took kStoodStill longer than the loop had
  // asked for: the machine was suspended, or the container paused. TimePoint{} if there was none. Workers and programs
  // stood still as well, so a limit on what they owe heddled counts from this time at the earliest. A standstill that
  // ends before the loop would have woken is not noticed.
  TimePoint awake_since() const { return awake_since_; }
  static constexpr Duration kStoodStill = std::chrono::seconds(1);

 private:
  EventLoop(const Clock& clock, Fd epoll) : clock_(clock), epoll_(std::move(epoll)) {}
  int timeout_ms(Duration patience) const;
  int sleep(int timeout_ms);
  void serve_timers();
  void serve_deferred();

  static constexpr int kMostReady = 4096;  // in a round

  const Clock& clock_;
  Fd epoll_;
  std::vector<epoll_event> ready_ = std::vector<epoll_event>(kMostReady);
  uint64_t last_id_ = 0;
  bool stopped_ = false;
  TimePoint awake_since_{};
  // Shared with the round that is calling a handler, which may remove its own watch meanwhile.
  std::unordered_map<uint64_t, std::shared_ptr<Handler>> handlers_;
  std::map<std::pair<TimePoint, uint64_t>, Work> timers_;
  std::vector<Work> deferred_;
  Work commit_;
};

}  // namespace heddle::daemon
