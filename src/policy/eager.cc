#include "policy/eager.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "policy/text.h"

namespace heddle::policy {
namespace {

// Of those that wait: each is tried on a copy of the request.
constexpr size_t kMostLookedAt = 16;

Bytes half_of(Bytes memory) {
  return Bytes{memory.value - memory.value / 2};
}

// Opens one device alone, where the gate behind it does as well.
class OneDevice : public PlacementGate {
 public:
  OneDevice(DeviceId device, const PlacementGate* behind) : device_(device), behind_(behind) {}
  uint64_t version() const override { return 0; }
  bool is_special(Lessee /*lessee*/) const override { return false; }
  std::vector<Lessee> next() const override { return {}; }
  bool may_go(Lessee /*lessee*/) const override { return true; }
  bool open(Lessee lessee, DeviceId device) const override {
    return device == device_ && (!behind_ || behind_->open(lessee, device));
  }
  void placed(Lessee /*lessee*/, DeviceId /*device*/) override {}

 private:
  DeviceId device_;
  const PlacementGate* behind_;
};

// Whether the policy would place the request there if it asked for so much.
bool would_place(const PlacementState& state, Request request, Bytes memory, DeviceId device) {
  const OneDevice gate(device, request.gate);
  request.memory = memory;
  request.gate = &gate;
  const Answer answer = state.placement().place(request, state.pool());
  const auto* placed = std::get_if<Placed>(&answer);
  return placed && placed->device == device && state.pool().fits(request, device);
}

void add_places(const PlacementState& state, const Request& request, std::vector<EagerPlace>& places) {
  const Pool& pool = state.pool();
  const Bytes least = half_of(request.memory);
  std::vector<EagerPlace> found;
  for (const DeviceId device : state.placement().candidates(request.model, pool)) {
    if (!pool.could_hold(request.memory, device) || pool.load(device).on_host.value > 0) continue;
    if (!would_place(state, request, least, device)) continue;
    const Bytes context = pool.need(request, device) - request.memory;
    found.push_back({request.task, device, least, pool.free(device) - context});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const EagerPlace& a, const EagerPlace& b) { return a.most > b.most; });
  places.insert(places.end(), found.begin(), found.end());
}

}  // namespace

std::vector<EagerPlace> Eager::could_launch(const Scheduler& scheduler) {
  const PlacementState& state = scheduler.state_;
  std::vector<EagerPlace> places;
  if (state.placement().memory_oblivious()) return places;
  for (size_t model = 0; model < scheduler.lines_.size(); ++model) {
    const Line& line = scheduler.lines_[model];
    size_t looked_at = 0;
    for (const auto& [key, wait] : line.waits()) {
      if (++looked_at > kMostLookedAt) break;
      if (wait.kind != RequestKind::kTask || line.why(wait).cause != WaitCause::kMemory) continue;
      if (scheduler.users_.over(wait.session, half_of(wait.memory))) continue;
      const bool holds = state.holds(wait.session);
      Request request = scheduler.request_of(wait, model);
      const auto workers = state.ledger().workers(wait.session, wait.virtual_device);
      request.workers = workers;
      if (!holds) request.gate = scheduler.options_.gate;
      if (request.gate && !request.gate->may_go({wait.session, wait.virtual_device})) continue;
      if (line.reserved && line.reserved->holder != key && !holds) request.closed = line.reserved->device;
      add_places(state, request, places);
    }
  }
  return places;
}

void Eager::launched(TaskId id, DeviceId device, Bytes on_host, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  if (it == scheduler_.tasks_.end() || it->second.running || !it->second.wait) return;
  const WaitKey key = *it->second.wait;
  const Wait& wait = scheduler_.lines_[key.model].at(key);
  if (wait.kind != RequestKind::kTask || on_host > wait.memory || !scheduler_.pool().has(device)) return;
  Request request = scheduler_.request_of(wait, key.model);
  request.memory -= on_host;
  const auto workers = scheduler_.state_.ledger().workers(wait.session, wait.virtual_device);
  request.workers = workers;
  if (!scheduler_.pool().fits(request, device) || scheduler_.users_.over(wait.session, request.memory)) return;
  std::string reason = text("launched eagerly: ", request.memory, " on device ", device, ", ", on_host,
                            " on the host, as it fits nowhere as a whole");
  if (scheduler_.options_.gate && !scheduler_.state_.holds(wait.session))
    scheduler_.options_.gate->placed({wait.session, wait.virtual_device}, device);
  scheduler_.state_.begin(request, device);
  scheduler_.state_.put_on_host(request.session, id, on_host);
  scheduler_.users_.take(request.session, request.memory);
  Decision granted{.kind = Decision::Kind::kGrant, .device = device, .reason = std::move(reason)};
  granted.on_host = on_host;
  it->second.launched = key;
  scheduler_.finish(key, std::move(granted), scheduler_.seen_);
  scheduler_.needs_changed(request.session);
}

Bytes Eager::could_promote(const Scheduler& scheduler, TaskId id) {
  const auto it = scheduler.tasks_.find(id);
  if (it == scheduler.tasks_.end() || !it->second.running) return {};
  const Scheduler::Task& task = it->second;
  if (task.wait || !task.extensions.empty() || task.leaving) return {};
  const Holding& holding = *scheduler.state_.ledger().find(task.session, id);
  const auto& reserved = scheduler.lines_[task.model].reserved;
  const bool behind = reserved && !(task.launched && *task.launched < reserved->holder);
  if (behind && reserved->device == holding.device) return {};
  const Bytes most = std::min(holding.on_host, scheduler.pool().free(holding.device));
  const UserMemory& users = scheduler.users_;
  if (users.most().value == 0) return most;
  const Bytes held = users.held(task.session);
  return held < users.most() ? std::min(most, users.most() - held) : Bytes{};
}

// Null where it is none that runs.
Scheduler::Task* Eager::running(TaskId id, TimePoint now) {
  scheduler_.seen_ = std::max(scheduler_.seen_, now);
  const auto it = scheduler_.tasks_.find(id);
  return it == scheduler_.tasks_.end() || !it->second.running ? nullptr : &it->second;
}

void Eager::promoted(TaskId id, Bytes bytes, TimePoint now) {
  const Scheduler::Task* task = running(id, now);
  if (!task) return;
  bytes = scheduler_.state_.take_from_host(task->session, id, bytes);
  scheduler_.state_.extend(task->session, id, bytes);
  scheduler_.users_.take(task->session, bytes);
  // The device takes another eager task, once all of this one is there.
  scheduler_.returned_on(task->model);
}

void Eager::returned_to_host(TaskId id, Bytes bytes, TimePoint now) {
  const Scheduler::Task* task = running(id, now);
  if (!task) return;
  bytes = scheduler_.state_.shrink(task->session, id, bytes);
  scheduler_.state_.put_on_host(task->session, id, bytes);
  scheduler_.users_.give_back(task->session, bytes);
  scheduler_.returned_on(task->model);
}

void Eager::host_memory_freed(TaskId id, Bytes less, TimePoint now) {
  const Scheduler::Task* task = running(id, now);
  if (!task) return;
  less = scheduler_.state_.take_from_host(task->session, id, less);
  scheduler_.budgets_.give_back(task->session, less);
}

std::vector<size_t> segments_that_fit(const std::vector<Bytes>& segments, Bytes space) {
  std::vector<size_t> fit;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (segments[i] > space) continue;
    space -= segments[i];
    fit.push_back(i);
  }
  return fit;
}

bool may_launch(const EagerPlace& place, Bytes memory, Bytes on_host, Bytes swap_free) {
  if (on_host.value == 0 || on_host >= memory || on_host > swap_free) return false;
  return memory - on_host >= place.least;
}

bool is_worth_promoting(Bytes bytes, Bytes on_host) {
  return bytes.value != 0 && bytes >= on_host - bytes;
}

}  // namespace heddle::policy
