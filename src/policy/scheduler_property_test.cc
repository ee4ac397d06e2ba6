// Random event sequences, by seed: whatever happens, the books add up and nobody is forgotten.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "policy/eager.h"
#include "policy/swapping.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using Kind = Decision::Kind;

// The same policy, of which the scheduler does not know that requests wait alike: it then asks for each one.
class AskedForEach : public Placement {
 public:
  explicit AskedForEach(std::unique_ptr<Placement> policy) : policy_(std::move(policy)) {}
  std::unique_ptr<Placement> clone() const override { return std::make_unique<AskedForEach>(policy_->clone()); }
  Scope scope() const override { return policy_->scope(); }
  bool memory_oblivious() const override { return policy_->memory_oblivious(); }
  std::span<const DeviceId> candidates(size_t model, const Pool& pool) const override {
    return policy_->candidates(model, pool);
  }
  std::optional<DeviceId> assignment(const Request& request) const override { return policy_->assignment(request); }
  Answer place(const Request& request, const Pool& pool) const override { return policy_->place(request, pool); }
  void opened(const Pool& pool) override { policy_->opened(pool); }
  void job_opened(JobId job, const std::string& app) override { policy_->job_opened(job, app); }
  void assigned(const Request& request, DeviceId device) override { policy_->assigned(request, device); }
  void served(JobId job, DeviceId device, const Service& service) override { policy_->served(job, device, service); }
  void job_ended(JobId job, Duration life) override { policy_->job_ended(job, life); }
  void task_began(TaskId task, const ComputeNeed& need, DeviceId device, const Pool& pool) override {
    policy_->task_began(task, need, device, pool);
  }
  void compute_changed(TaskId task, const ComputeNeed& need, const Pool& pool) override {
    policy_->compute_changed(task, need, pool);
  }
  void task_ended(TaskId task) override { policy_->task_ended(task); }

 private:
  std::unique_ptr<Placement> policy_;
};

class RandomRun {
 public:
  RandomRun(const char* policy, uint64_t seed) : RandomRun(policy_named(policy), seed) {}
  // `needs`: tasks are of so many kinds only, so that many ask for the same.
  RandomRun(std::unique_ptr<Placement> policy, uint64_t seed, uint64_t needs = 0)
      : random_(seed),
        needs_(needs),
        oblivious_(policy->memory_oblivious()),
        devices_(make_devices()),
        options_{.memory_per_user = Bytes{pick(2) * (6 + pick(20)) * kGiB}, .swaps = pick(2) == 0},
        scheduler_(std::move(policy), devices_, options_) {}

  void step() {
    now_ += std::chrono::milliseconds(pick(700));
    for (uint64_t events = pick(4); events > 0; --events) event();
    if (pick(3) == 0) leave();
    for (const RunningView& running : scheduler_.running())
      scheduler_.served(running.session, running.device, {.busy = std::chrono::milliseconds(pick(300))});
    decide();
    if (pick(2) == 0) launch_eagerly();
  }

  // Ends whatever runs, oldest session first, and sees that those who wait get their turn.
  void drain() {
    for (const DeviceSpec& device : devices_) scheduler_.outside_memory(device.id, {}, now_);
    decide();
    while (!sessions_.empty()) {
      now_ += std::chrono::milliseconds(10);
      for (int round = 0; !leaving_.empty(); ++round) {
        ASSERT_LT(round, 1000) << "somebody is to leave for ever";
        leave();
        decide();
      }
      close(runner());
      decide();
    }
  }

  void expect_idle() const {
    EXPECT_TRUE(asked_.empty()) << asked_.size() << " requests were never decided";
    EXPECT_TRUE(scheduler_.waiting().empty());
    EXPECT_TRUE(scheduler_.running().empty());
    for (const DeviceView& device : scheduler_.devices()) {
      EXPECT_EQ(device.free, device.capacity);
      EXPECT_EQ(device.promised.value + device.warps + device.workers + device.tasks, 0u);
    }
  }

  const std::vector<std::string>& log() const { return log_; }
  // Who waits, in order.
  std::vector<TaskId> waits() const {
    std::vector<TaskId> tasks;
    for (const WaitView& wait : scheduler_.waiting()) {
      EXPECT_FALSE(wait.why.empty()) << "task " << wait.task.value;
      tasks.push_back(wait.task);
    }
    return tasks;
  }
  size_t most_waiting() const { return most_waiting_; }
  size_t eager_launches() const { return eager_launches_; }
  size_t promotions() const { return promotions_; }

 private:
  struct Task {
    SessionId session;
    Bytes memory;
    bool running = false, swapped = false, returning = false;
  };

  uint64_t pick(uint64_t below) { return random_() % below; }

  std::vector<DeviceSpec> make_devices() {
    std::vector<DeviceSpec> devices;
    for (uint64_t id = 0; id < 1 + pick(5); ++id) {
      devices.push_back(p100(id, Bytes{(4 + pick(12)) * kGiB}, Bytes{pick(2) * kGiB / 2}));
      if (id > 0 && pick(4) == 0) devices.back().model = "other";
      if (pick(4) == 0) devices.back().max_clients = static_cast<uint32_t>(1 + pick(3));
    }
    return devices;
  }

  void event() {
    if (sessions_.empty() || pick(10) == 0) return open();
    switch (pick(13)) {
      case 0:
        return pick(3) == 0 ? close(any_session()) : void();
      case 1:
      case 2:
      case 3:
        return arrive(any_session());
      case 4:
        return with_task([&](TaskId task) { extend(task); });
      case 5:
        return with_task([&](TaskId task) { scheduler_.compute_grew(task, grid(pick(600)), now_); });
      case 6:
        return with_task([&](TaskId task) { shrink(task); });
      case 7:
      case 8:
        return with_task([&](TaskId task) { swap(task); });
      case 9:
        return with_task([&](TaskId task) { promote(task); });
      case 10:
        return with_task([&](TaskId task) { free_on_host(task); });
      case 11:
        return scheduler_.outside_memory({pick(devices_.size())}, Bytes{pick(3) * pick(8) * kGiB}, now_);
      default:
        return with_task([&](TaskId task) { end(task); });
    }
  }

  void open() {
    const SessionId session{++ids_};
    const JobId job{1 + pick(2) * pick(6) + session.value / 2 * 10};
    scheduler_.session_opened(session, job, devices_[pick(devices_.size())].model, Bytes{pick(3) * 10 * kGiB}, now_,
                              user_of(session), std::string(1, static_cast<char>('a' + pick(4))));
    sessions_.insert(session);
  }

  void close(SessionId session) {
    scheduler_.session_closed(session, now_);
    sessions_.erase(session);
    std::erase_if(tasks_, [&](const auto& entry) {
      if (entry.second.session == session) asked_.erase(entry.first);
      return entry.second.session == session;
    });
  }

  void arrive(SessionId session) {
    const TaskId task{++ids_};
    const uint64_t kind = needs_ > 0 ? 1 + pick(needs_) : 0;
    const Bytes memory = kind > 0 ? gib(kind) : Bytes{pick(8 * kGiB) / (1 + pick(4))};
    tasks_[task] = {session, memory, false};
    asked_[task] = 1;
    const std::string model = pick(4) == 0 ? devices_[pick(devices_.size())].model : "";
    const ComputeNeed compute = grid(kind > 0 ? 200 * kind : pick(900));
    scheduler_.task_arrived({task, session, {}, static_cast<uint32_t>(pick(3)), model, memory, compute}, now_);
  }

  void extend(TaskId task) {
    ++asked_[task];
    scheduler_.extension_requested(task, Bytes{pick(5 * kGiB)}, now_);
  }

  void shrink(TaskId task) {
    const Bytes less{pick(3 * kGiB)};
    scheduler_.memory_freed(task, less, now_);
  }

  // One that runs is swapped out; one that is wants a device, or none after all.
  void swap(TaskId id) {
    Task& task = tasks_.at(id);
    if (task.running && !oblivious_) {
      Swapping(scheduler_).swapped_out(id, now_);
      task = {task.session, task.memory, false, true, false};
    } else if (task.swapped && !task.returning) {
      Swapping(scheduler_).resume_requested(id, now_);
      task.returning = true;
      ++asked_[id];
    } else if (task.returning && pick(2) == 0) {
      Swapping(scheduler_).resume_withdrawn(id, now_);
      task.returning = false;
      if (--asked_[id] == 0) asked_.erase(id);
    }
  }

  // As whoever cuts the memory may: at any place, with the least on the device, the most, or between.
  void launch_eagerly() {
    const auto places = Eager::could_launch(scheduler_);
    EXPECT_TRUE(places.empty() || !oblivious_);
    if (places.empty()) return;
    const EagerPlace& place = places[pick(places.size())];
    const Bytes memory = memory_of_waiting(place.task), room = place.most - place.least;
    const Bytes on_device = place.least + Bytes{room.value == 0 ? 0 : pick(room.value + 1)};
    EXPECT_LT(on_device, memory) << "it would have fitted as a whole";
    Eager(scheduler_).launched(place.task, place.device, memory - on_device, now_);
    decide();
    EXPECT_TRUE(tasks_.at(place.task).running);
    ++eager_launches_;
  }

  Bytes memory_of_waiting(TaskId task) const {
    for (const WaitView& wait : scheduler_.waiting()) {
      if (wait.task == task) return wait.memory;
    }
    ADD_FAILURE() << "task " << task.value << " does not wait";
    return {};
  }

  // Some of what could be; now and then it comes to nothing.
  void promote(TaskId task) {
    const Bytes most = Eager::could_promote(scheduler_, task);
    if (most.value == 0) return;
    const Bytes bytes{1 + pick(most.value)};
    Eager(scheduler_).promoted(task, bytes, now_);
    if (pick(3) == 0) Eager(scheduler_).returned_to_host(task, bytes, now_);
    ++promotions_;
  }

  void free_on_host(TaskId task) { Eager(scheduler_).host_memory_freed(task, Bytes{pick(2 * kGiB)}, now_); }

  // Who was told to leave does, and wants to come back at once, or cannot.
  void leave() {
    for (const TaskId id : std::exchange(leaving_, {})) {
      const auto task = tasks_.find(id);
      if (task == tasks_.end() || !task->second.running) continue;
      if (pick(3) == 0) {
        Swapping(scheduler_).stays(id, "it does not want to", now_);
      } else {
        swap(id);
        swap(id);
      }
    }
  }

  void end(TaskId task) {
    scheduler_.task_ended(task, now_);
    tasks_.erase(task);
    asked_.erase(task);
  }

  static UserId user_of(SessionId session) { return {session.value % 3}; }

  // Takes the decisions and checks each against what was asked.
  void decide() {
    for (const Decision& decision : scheduler_.decisions(now_)) {
      log_.push_back(std::to_string(static_cast<int>(decision.kind)) + " " + std::to_string(decision.task.value) + " " +
                     std::to_string(decision.device.value) + " " + decision.reason);
      EXPECT_FALSE(decision.reason.empty());
      const auto task = tasks_.find(decision.task);
      if (decision.kind == Kind::kLeave) {
        EXPECT_TRUE(options_.swaps && task != tasks_.end() && task->second.running);
        leaving_.push_back(decision.task);
        continue;
      }
      if (task == tasks_.end()) {
        EXPECT_EQ(decision.kind, Kind::kRefuse) << "task " << decision.task.value << " was gone";
        continue;
      }
      EXPECT_GT(asked_[decision.task], 0) << "task " << decision.task.value << " was decided twice";
      if (--asked_[decision.task] == 0) asked_.erase(decision.task);
      EXPECT_NE(decision.kind, task->second.running ? Kind::kGrant : Kind::kExtend);
      if (decision.kind == Kind::kGrant) {
        EXPECT_EQ(decision.request == RequestKind::kResume, task->second.returning);
        task->second = {task->second.session, task->second.memory, true, false, false};
      }
      if (decision.kind == Kind::kRefuse && wants_device(decision.request)) {
        asked_.erase(decision.task);
        tasks_.erase(task);
      }
    }
    most_waiting_ = std::max(most_waiting_, scheduler_.waiting().size());
    check_devices();
    check_users();
    check_nobody_is_stranded();
  }

  // What the tasks hold, added up anew, is what the devices say.
  void check_devices() const {
    std::vector<Bytes> held(devices_.size());
    std::vector<size_t> eager(devices_.size());
    for (const RunningView& running : scheduler_.running()) {
      held[running.device.value] += running.memory;
      if (running.on_host.value > 0) ++eager[running.device.value];
    }
    for (const size_t tasks : eager) EXPECT_LE(tasks, 1u);
    for (const DeviceView& device : scheduler_.devices()) {
      EXPECT_EQ(device.promised, held[device.id.value] + device.contexts);
      EXPECT_EQ(device.promised + device.free + device.outside, device.capacity);
      EXPECT_LE(device.promised, device.capacity);
    }
  }

  void check_users() const {
    if (options_.memory_per_user.value == 0) return;
    std::map<UserId, Bytes> held;
    for (const RunningView& running : scheduler_.running()) held[user_of(running.session)] += running.memory;
    for (const auto& [user, memory] : held) EXPECT_LE(memory, options_.memory_per_user) << "user " << user.value;
  }

  // With nothing held anywhere, by nobody outside either, nobody waits; and where all sessions that hold something
  // wait, a pass must have found out whether that can end, so somebody who waits must be able to go once the others'
  // turn has come (drain() shows that).
  void check_nobody_is_stranded() const {
    if (!scheduler_.running().empty()) return;
    for (const DeviceView& device : scheduler_.devices()) {
      if (device.workers > 0 || device.outside.value > 0) return;
    }
    if (scheduler_.assigns_jobs()) return;  // a job's place outlasts its tasks
    EXPECT_TRUE(scheduler_.waiting().empty()) << scheduler_.waiting()[0].why;
  }

  SessionId any_session() {
    auto it = sessions_.begin();
    std::advance(it, pick(sessions_.size()));
    return *it;
  }

  // A session that waits for nothing, as only such a one can come to its end by itself. There must be one: otherwise
  // everybody waits for everybody.
  SessionId runner() {
    std::set<SessionId> waiting;
    for (const WaitView& wait : scheduler_.waiting()) waiting.insert(wait.session);
    for (const SessionId session : sessions_) {
      if (!waiting.contains(session)) return session;
    }
    ADD_FAILURE() << "all " << sessions_.size() << " sessions wait: " << scheduler_.waiting()[0].why;
    return *sessions_.begin();
  }

  template <class Act>
  void with_task(Act act) {
    if (tasks_.empty()) return;
    auto it = tasks_.begin();
    std::advance(it, pick(tasks_.size()));
    act(TaskId(it->first));
  }

  std::mt19937_64 random_;
  const uint64_t needs_;
  const bool oblivious_;
  size_t most_waiting_ = 0, eager_launches_ = 0, promotions_ = 0;
  std::vector<DeviceSpec> devices_;
  Options options_;
  Scheduler scheduler_;
  TimePoint now_{};
  uint64_t ids_ = 0;
  std::set<SessionId> sessions_;
  std::map<TaskId, Task> tasks_;
  std::vector<TaskId> leaving_;  // told to leave, and have not yet
  std::map<TaskId, int> asked_;  // requests of each task that are not decided yet
  std::vector<std::string> log_;
};

class AnyEvents : public testing::TestWithParam<const char*> {};

TEST_P(AnyEvents, LeaveTheBooksRightAndNobodyWaitingForever) {
  size_t eager_launches = 0, promotions = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(GetParam(), seed);
    for (int step = 0; step < 120 && !testing::Test::HasFailure(); ++step) run.step();
    run.drain();
    run.expect_idle();
    if (testing::Test::HasFailure()) return;
    eager_launches += run.eager_launches();
    promotions += run.promotions();
  }
  const bool launches_eagerly = std::set<std::string_view>{"schedgpu", "mgb-sm", "mgb-warps"}.contains(GetParam());
  if (!launches_eagerly) return;
  EXPECT_GT(eager_launches, 20u);
  EXPECT_GT(promotions, 0u);
}

TEST_P(AnyEvents, DecideTheSameEachTime) {
  const auto decisions_of = [](uint64_t seed) {
    RandomRun run(GetParam(), seed);
    for (int step = 0; step < 100; ++step) run.step();
    return run.log();
  };
  for (uint64_t seed = 0; seed < 10; ++seed) EXPECT_EQ(decisions_of(seed), decisions_of(seed));
}

// Few kinds of tasks, of which many wait: that some are passed over changes no decision, no time and no reason.
TEST_P(AnyEvents, DecideAsIfEachWereAskedFor) {
  size_t most_waiting = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(policy_named(GetParam()), seed, 1 + seed % 5);
    RandomRun plain(std::make_unique<AskedForEach>(policy_named(GetParam())), seed, 1 + seed % 5);
    for (int step = 0; step < 100; ++step) {
      run.step();
      plain.step();
      ASSERT_EQ(run.log().size(), plain.log().size()) << "step " << step;
      ASSERT_EQ(run.waits(), plain.waits()) << "step " << step;
    }
    ASSERT_EQ(run.log(), plain.log());
    most_waiting = std::max(most_waiting, run.most_waiting());
  }
  EXPECT_GT(most_waiting, std::string_view(GetParam()).starts_with("cg") ? 0u : 8u);
}

INSTANTIATE_TEST_SUITE_P(Placement, AnyEvents,
                         testing::Values("sa", "cg:2", "schedgpu", "mgb-sm", "mgb-warps", "grr", "gmin", "gwtmin",
                                         "rtf", "guf", "guf:cpu"));

}  // namespace
}  // namespace heddle::policy
