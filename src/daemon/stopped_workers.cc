#include "daemon/stopped_workers.h"

#include <csignal>
#include <utility>

#include "daemon/proc_file.h"
#include "daemon/spawn.h"

namespace heddle::daemon {
namespace {

// A worker that is stopped at two looks in a row is continued: after 1.5 to 3 s. Who only looks at it for a moment is
// left alone.
constexpr Duration kEvery = std::chrono::milliseconds(1500);

}  // namespace

void StoppedWorkers::watch() {
  if (watching_) return;
  watching_ = true;
  timer_ = shared_.loop.after(kEvery, [this] { look(); });
}

void StoppedWorkers::look() {
  watching_ = false;
  bool serves = false;
  const std::set<WorkerId> before = std::exchange(stopped_, {});
  for (const auto& [id, worker] : shared_.registry.workers) {
    serves |= worker.state == Worker::State::kBound;
    if (worker.held_back || !is_stopped(worker.pid)) continue;
    if (!before.contains(id)) {
      stopped_.insert(id);
      continue;
    }
    shared_.log->warn("worker {}, process {}, was stopped: it is continued, because others wait for it", id.value,
                      worker.pid);
    kill_process(worker.process, SIGCONT);
  }
  if (serves) watch();
}

}  // namespace heddle::daemon
