// Tasks without processes: real books, scheduler and state machine, an executor that only writes down.

#include "daemon/tasks.h"

#include <gmock/gmock.h>

#include "daemon/cuda_codes.h"
#include "daemon/testing/books.h"
#include "daemon/testing/fake_executor.h"
#include "policy/dispatch/table.h"
#include "policy/placement/table.h"

namespace heddle::daemon {
namespace {

using protocol::Binding;
using ::testing::ElementsAre;
using testing::FakeExecutor;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Bytes kDeviceMemory{64 * kMiB};

policy::DeviceSpec spec() {
  policy::DeviceSpec spec;
  spec.name = "device 0";
  spec.model = "test";
  spec.memory = kDeviceMemory;
  spec.sms = 4;
  spec.sm.whole = {.blocks = 32, .warps = 64, .registers = 65536, .shared = 64 * kKiB};
  return spec;
}

class TasksTest : public ::testing::Test, protected testing::Books {
 protected:
  TasksTest() : Books("tasks_test") {
    registry_.devices.emplace_back();
    registry_.devices[0].config.model.kind = DeviceKind::kSoftware;
  }
  // One with a ring, whose task can hold `memory` as segment 1.
  Session& open() {
    Session session;
    session.id = SessionId{ids_.next()};
    session.job = JobId{ids_.next()};
    session.model = "test";
    session.budget = kDeviceMemory;
    session.devices.resize(1);
    VirtualDevice& device = session.devices[0];
    auto ring = protocol::RingMemory::create(shared_.config.ring);
    EXPECT_TRUE(ring) << ring.error().text;
    device.ring_memory = std::move(ring->first);
    device.ring = std::move(ring->second);
    auto control = protocol::ControlPage::create();
    EXPECT_TRUE(control) << control.error().text;
    device.control_memory = std::move(control->first);
    device.control = std::move(control->second);
    device.ring_key = ids_.next();
    const SessionId id = session.id;
    Session& placed = registry_.sessions.emplace(id, std::move(session)).first->second;
    tasks_.session_opened(placed);
    return placed;
  }
  void declare(Session& session, uint64_t number, Bytes bytes) {
    tasks_.declare(session, {0, number, number << 32, bytes.value, protocol::SegmentKind::kDevice});
  }
  void begin(Session& session, uint64_t serial) {
    protocol::BeginTask task{serial};
    task.need.blocks = 1;
    task.need.threads_per_block = 128;
    EXPECT_TRUE(tasks_.begin(session, task));
  }
  // As Turn does.
  void turn() {
    while (events_.begin_turn()) {
      while (events_.next()) {
      }
      if (!events_.take_books_changed()) continue;
      tasks_.decide();
    }
  }
  Session& started(Bytes memory) {
    Session& session = open();
    declare(session, 1, memory);
    begin(session, 1);
    turn();
    return session;
  }
  Session& running(Bytes memory) {
    Session& session = started(memory);
    tasks_.executor_found(session, session.devices[0]);
    executor_.told.clear();
    return session;
  }
  static TaskState state(const Session& session) { return session.devices[0].task->state; }
  static Binding binding(Session& session) {
    return static_cast<Binding>(session.devices[0].ring->header().binding.load());
  }
  Bytes promised() const { return tasks_.scheduler().devices()[0].promised; }

  Keepers keepers_{*loop_, events_, "", -1};
  Copies copies_{shared_, keepers_};
  SwapSpace swap_space_{*loop_, clock_, keepers_, shared_.config.swap, registry_};
  SegmentStore segments_{shared_, keepers_, copies_, swap_space_};
  Swaps swaps_{shared_, keepers_, copies_, swap_space_, segments_};
  FakeExecutor executor_;
  Leases leases_{shared_};
  Tasks tasks_{shared_,
               executor_,
               segments_,
               leases_,
               swaps_,
               std::make_unique<policy::RecordedScheduler>("mgb-warps", *policy::make_placement("mgb-warps"),
                                                           std::vector{spec()}, policy::Options{}),
               false};
};

TEST_F(TasksTest, AGrantedTaskLooksForAnExecutorAndIsHandedOverWithItsMemory) {
  Session& session = started(Bytes{8 * kMiB});
  EXPECT_EQ(state(session), TaskState::kStarting);
  EXPECT_EQ(binding(session), Binding::kWaiting);
  EXPECT_THAT(executor_.take_told(), ElementsAre("find"));
  EXPECT_FALSE(session.segments.at(1).memory) << "nobody uses it yet";
  tasks_.executor_found(session, session.devices[0]);
  EXPECT_EQ(state(session), TaskState::kRunning);
  EXPECT_EQ(binding(session), Binding::kBound);
  EXPECT_THAT(executor_.take_told(), ElementsAre("engage", "hand over"));
  EXPECT_TRUE(session.segments.at(1).memory);
}

TEST_F(TasksTest, WhatIsAskedForWhileItRunsIsGivenAlone) {
  Session& session = running(Bytes{8 * kMiB});
  declare(session, 2, Bytes{4 * kMiB});
  turn();
  EXPECT_THAT(executor_.take_told(), ElementsAre("segment 2"));
  EXPECT_EQ(promised(), Bytes{12 * kMiB});
}

TEST_F(TasksTest, AWaitingTaskThatFailsEndsAtOnceAndTheRunningOneWithItsExecutor) {
  Session& first = running(Bytes{40 * kMiB});
  Session& second = started(Bytes{40 * kMiB});
  EXPECT_EQ(state(second), TaskState::kWaiting);
  tasks_.fail_session(second, kCudaUnknown, "a test");
  EXPECT_EQ(second.devices[0].task, nullptr);
  EXPECT_THAT(executor_.take_told(), IsEmpty());

  tasks_.fail_session(first, kCudaUnknown, "a test");
  EXPECT_EQ(state(first), TaskState::kStopping);
  EXPECT_EQ(binding(first), Binding::kFailed);
  EXPECT_THAT(executor_.take_told(), ElementsAre("stop"));
  EXPECT_EQ(promised(), Bytes{40 * kMiB}) << "somebody may still use it";
  EXPECT_FALSE(tasks_.executor_gone(first, first.devices[0], "", true));
  EXPECT_EQ(first.devices[0].task, nullptr);
  EXPECT_EQ(promised(), Bytes{});
}

TEST_F(TasksTest, AnExecutorThatGoesByItselfFailsTheSession) {
  Session& session = running(Bytes{8 * kMiB});
  EXPECT_FALSE(tasks_.executor_gone(session, session.devices[0], "it fell over", true));
  EXPECT_EQ(session.failure, "it fell over");
  EXPECT_EQ(session.devices[0].ring->header().error.load(), kCudaLaunchFailure);
  EXPECT_TRUE(session.segments.empty());
  EXPECT_EQ(promised(), Bytes{});
}

// A process with a context on a GPU may take a tenth of a second to end.
TEST_F(TasksTest, TheLeaseOfATaskThatIsStoppedGoesOnBeforeItsExecutorIsGone) {
  leases_.open([] { return std::move(policy::make_dispatch("fs")).value(); });
  Session &first = running(Bytes{8 * kMiB}), &second = running(Bytes{8 * kMiB});
  for (Session* session : {&first, &second}) leases_.backlog(*session, session->devices[0]);
  leases_.decide();
  EXPECT_STREQ(leases_.view(first, first.devices[0])->state, "held");
  EXPECT_STREQ(leases_.view(second, second.devices[0])->state, "waits");
  EXPECT_FALSE(tasks_.end(first));
  leases_.decide();
  EXPECT_STREQ(leases_.view(second, second.devices[0])->state, "held");
  EXPECT_TRUE(tasks_.executor_gone(first, first.devices[0], "", true));
  EXPECT_STREQ(leases_.view(second, second.devices[0])->state, "held");
}

TEST_F(TasksTest, ASessionThatEndsIsReleasedWithItsExecutor) {
  Session& idle = open();
  EXPECT_TRUE(tasks_.end(idle));
  Session& session = running(Bytes{8 * kMiB});
  EXPECT_FALSE(tasks_.end(session));
  EXPECT_TRUE(tasks_.executor_gone(session, session.devices[0], "", true));
}

// By a policy that learns; without figures it says "fewest jobs".
TEST_F(TasksTest, WhatATaskUsedIsKnownWhenTheNextOfItsKindIsPlaced) {
  tasks_.set_scheduler(std::make_unique<policy::RecordedScheduler>("rtf", *policy::make_placement("rtf"),
                                                                   std::vector{spec()}, policy::Options{}),
                       false);
  Session& first = running(Bytes{8 * kMiB});
  EXPECT_THAT(first.devices[0].task->reason, HasSubstr("fewest jobs"));
  clock_.advance(std::chrono::seconds(1));
  first.devices[0].control->publish({.busy_ns = 250'000'000});
  EXPECT_FALSE(tasks_.end(first));
  EXPECT_TRUE(tasks_.executor_gone(first, first.devices[0], "", true));
  EXPECT_THAT(started(Bytes{8 * kMiB}).devices[0].task->reason, HasSubstr("0.25 s of this job"));
}

TEST_F(TasksTest, ATaskBegunBehindAnotherFollowsIt) {
  Session& session = running(Bytes{8 * kMiB});
  declare(session, 2, Bytes{4 * kMiB});
  begin(session, 2);
  tasks_.segment_freed(session, session.devices[0], 1);
  tasks_.finished(session, session.devices[0], true);
  turn();
  EXPECT_EQ(session.devices[0].last_serial, 1u);
  EXPECT_EQ(session.devices[0].task->serial, 2u);
  EXPECT_EQ(state(session), TaskState::kStarting);
  EXPECT_EQ(promised(), Bytes{4 * kMiB});
}

// An error of ours, told as one: the program fails with it, and nobody else notices.
TEST_F(TasksTest, AnEventThatCannotComeFailsTheSessionByName) {
  Session &session = running(Bytes{8 * kMiB}), &neighbour = running(Bytes{8 * kMiB});
  tasks_.executor_found(session, session.devices[0]);
  EXPECT_THAT(session.failure, HasSubstr("a task that is running cannot be served"));
  EXPECT_EQ(state(session), TaskState::kStopping);
  EXPECT_THAT(executor_.take_told(), ElementsAre("stop"));
  EXPECT_EQ(state(neighbour), TaskState::kRunning);
}

}  // namespace
}  // namespace heddle::daemon
