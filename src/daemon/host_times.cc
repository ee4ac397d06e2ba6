#include "daemon/host_times.h"

#include "daemon/proc_file.h"
#include "policy/learning.h"

namespace heddle::daemon {
namespace {

constexpr Duration kLookAtHostsEvery = std::chrono::seconds(1);

bool anybody_learns(const policy::Scheduler& scheduler) {
  return policy::Learning::history(scheduler) != nullptr;
}

}  // namespace

void HostTimes::began(Session& session) {
  look(session);
  if (!next_ && anybody_learns(tasks_.scheduler()))
    next_ = shared_.loop.after(kLookAtHostsEvery, [this] { look_at_all(); });
}

void HostTimes::look(Tasks& tasks, Session& session) {
  if (!anybody_learns(tasks.scheduler())) return;
  const auto time = process_time(session.pid, session.process);
  if (!time) return;
  const Duration before = std::exchange(session.host_time, *time).value_or(*time);
  if (*time > before) tasks.scheduler_->computed(session.id, *time - before);
}

void HostTimes::look_at_all() {
  next_.reset();
  for (auto& [id, session] : shared_.registry.sessions) look(session);
  if (!shared_.registry.sessions.empty()) next_ = shared_.loop.after(kLookAtHostsEvery, [this] { look_at_all(); });
}

}  // namespace heddle::daemon
