#include "daemon/event_loop.h"

#include <sys/epoll.h>

#include <cerrno>

#include "core/log.h"

namespace heddle::daemon {

EventLoop::Watch& EventLoop::Watch::operator=(Watch&& other) noexcept {
  if (this == &other) return *this;
  reset();
  loop_ = std::exchange(other.loop_, nullptr);
  id_ = other.id_;
  fd_ = other.fd_;
  return *this;
}

void EventLoop::Watch::reset() {
  if (!loop_) return;
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
  loop_->handlers_.erase(id_);
  loop_ = nullptr;
}

void EventLoop::Watch::set_events(uint32_t events) {
  if (!loop_) return;
  epoll_event event{events, {.u64 = id_}};
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, fd_, &event);
}

EventLoop::Timer& EventLoop::Timer::operator=(Timer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  loop_ = std::exchange(other.loop_, nullptr);
  key_ = other.key_;
  return *this;
}

void EventLoop::Timer::reset() {
  if (loop_) loop_->timers_.erase(key_);
  loop_ = nullptr;
}

Result<std::unique_ptr<EventLoop>> EventLoop::create(const Clock& clock) {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return fail_errno(-1, "cannot create an epoll descriptor");
  return std::unique_ptr<EventLoop>(new EventLoop(clock, std::move(epoll)));
}

Result<EventLoop::Watch> EventLoop::watch(int fd, uint32_t events, Handler handler) {
  const uint64_t id = ++last_id_;
  epoll_event event{events, {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno(-1, "cannot watch descriptor %d", fd);
  handlers_[id] = std::make_shared<Handler>(std::move(handler));
  Watch watch;
  watch.loop_ = this;
  watch.id_ = id;
  watch.fd_ = fd;
  return watch;
}

EventLoop::Timer EventLoop::at(TimePoint when, Work work) {
  Timer timer;
  timer.loop_ = this;
  timer.key_ = {when, ++last_id_};
  timers_[timer.key_] = std::move(work);
  return timer;
}

int EventLoop::timeout_ms(Duration patience) const {
  if (!deferred_.empty()) return 0;
  if (!timers_.empty()) {
    const Duration due = std::max(timers_.begin()->first.first - clock_.now(), Duration{});
    patience = patience.count() < 0 ? due : std::min(patience, due);
  }
  if (patience.count() < 0) return -1;
  constexpr Duration kLongest = std::chrono::hours(24);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(std::min(patience, kLongest)).count());
}

// Collects all ready descriptors in one round, so that none waits several rounds behind a crowd of others. Notices
// standstills.
int EventLoop::sleep(int timeout_ms) {
  const TimePoint asleep = clock_.now();
  const int ready = ::epoll_wait(epoll_.get(), ready_.data(), kMostReady, timeout_ms);
  const TimePoint awake = clock_.now();
  const Duration stood_still = awake - asleep - std::chrono::milliseconds(timeout_ms);
  if (timeout_ms >= 0 && stood_still > kStoodStill) {
    awake_since_ = awake;
    logger("heddled")->warn("heddled did not run for {}: its machine or container was stopped, or is very busy",
                            to_string(stood_still));
  }
  return ready;
}

Status EventLoop::run_once(Duration patience) {
  commit();
  const int ready = sleep(timeout_ms(patience));
  if (ready < 0 && errno != EINTR) return fail_errno(-1, "cannot wait for events");
  for (int i = 0; i < ready; ++i) {
    const epoll_event event = ready_[static_cast<size_t>(i)];
    const uint64_t id = event.data.u64;  // the kernel's struct is packed: no reference may be bound to its members
    const auto found = handlers_.find(id);
    if (found == handlers_.end()) continue;  // an earlier handler of this round removed it
    const std::shared_ptr<Handler> handler = found->second;
    (*handler)(event.events);
  }
  serve_timers();
  serve_deferred();
  return {};
}

Status EventLoop::run() {
  stopped_ = false;
  while (!stopped_) HEDDLE_TRY(run_once(Duration{-1}));
  return {};
}

void EventLoop::serve_timers() {
  const TimePoint now = clock_.now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto node = timers_.extract(timers_.begin());
    node.mapped()();
  }
}

void EventLoop::serve_deferred() {
  while (!deferred_.empty()) {
    const std::vector<Work> work = std::exchange(deferred_, {});
    for (const Work& each : work) each();
  }
}

}  // namespace heddle::daemon
