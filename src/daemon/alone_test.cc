#include "daemon/alone.h"

#include <gtest/gtest.h>

namespace heddle::daemon {
namespace {

// Two devices, and sessions with a task on one of them.
struct AloneTest : ::testing::Test {
  AloneTest() {
    for (uint64_t i = 0; i < 2; ++i) registry.devices.emplace_back().id = DeviceId{i};
  }
  VirtualDevice& runs(uint64_t session, uint64_t device, TaskState state = TaskState::kRunning) {
    Session& of = registry.sessions[SessionId{session}];
    of.id = SessionId{session};
    VirtualDevice& added = of.devices.emplace_back();
    added.control = std::move(protocol::ControlPage::create()->second);
    added.task = std::make_unique<Task>();
    added.task->device = DeviceId{device};
    added.task->state = state;
    return added;
  }
  bool is_alone(uint64_t session) { return registry.sessions[SessionId{session}].devices[0].control->is_alone(); }

  Registry registry;
};

TEST_F(AloneTest, OnlyProgramOfADeviceIs) {
  runs(1, 0);
  note_who_is_alone(registry, true);
  EXPECT_TRUE(is_alone(1));
}

TEST_F(AloneTest, ProgramsOfTwoDevicesBothAre) {
  runs(1, 0);
  runs(2, 1);
  note_who_is_alone(registry, true);
  EXPECT_TRUE(is_alone(1));
  EXPECT_TRUE(is_alone(2));
}

TEST_F(AloneTest, SecondProgramOfADeviceEndsIt) {
  runs(1, 0);
  note_who_is_alone(registry, true);
  runs(2, 0, TaskState::kStarting);
  note_who_is_alone(registry, true);
  EXPECT_FALSE(is_alone(1));
  EXPECT_FALSE(is_alone(2));
}

TEST_F(AloneTest, ThirdProgramChangesNothing) {
  for (const uint64_t session : {1, 2, 3}) runs(session, 0);
  note_who_is_alone(registry, true);
  for (const uint64_t session : {1, 2, 3}) EXPECT_FALSE(is_alone(session));
}

TEST_F(AloneTest, OneProgramWithTwoTasksOnADeviceIs) {
  runs(1, 0);
  runs(1, 0);
  note_who_is_alone(registry, true);
  EXPECT_TRUE(is_alone(1));
}

TEST_F(AloneTest, SuspendedProgramIsNoNeighbour) {
  runs(1, 0);
  runs(2, 0, TaskState::kSuspended);
  note_who_is_alone(registry, true);
  EXPECT_TRUE(is_alone(1));
}

TEST_F(AloneTest, NobodyIsWhereNobodyIsSpared) {
  runs(1, 0);
  note_who_is_alone(registry, true);
  note_who_is_alone(registry, false);
  EXPECT_FALSE(is_alone(1));
}

}  // namespace
}  // namespace heddle::daemon
