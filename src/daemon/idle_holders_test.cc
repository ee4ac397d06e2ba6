#include "daemon/idle_holders.h"

#include <gtest/gtest.h>

#include "protocol/ring_writer.h"

namespace heddle::daemon {
namespace {

using std::chrono::milliseconds;

TimePoint at(int64_t ms) {
  return TimePoint(milliseconds(ms));
}

TEST(MayLeaveAgain, OneThatNeverLeftMay) {
  EXPECT_TRUE(may_leave_again({}, milliseconds(1000), at(1)));
}

TEST(MayLeaveAgain, OneThatCameBackStaysForFiveTimesIdle) {
  Task task;
  task.came_back = at(100);
  task.swap_took = milliseconds(10);
  EXPECT_FALSE(may_leave_again(task, milliseconds(1000), at(5099)));
  EXPECT_TRUE(may_leave_again(task, milliseconds(1000), at(5100)));
}

TEST(MayLeaveAgain, OneWithMuchMemoryStaysForTenTimesItsWay) {
  Task task;
  task.came_back = at(100);
  task.swap_took = milliseconds(2000);
  EXPECT_FALSE(may_leave_again(task, milliseconds(1000), at(20'099)));
  EXPECT_TRUE(may_leave_again(task, milliseconds(1000), at(20'100)));
}

struct HasWork : ::testing::Test {
  HasWork() {
    auto ring = std::move(*protocol::RingMemory::create({}));
    device.ring = std::move(ring.second);
    auto page = std::move(*protocol::ControlPage::create());
    device.control = std::move(page.second);
    device.task = std::make_unique<Task>();
  }
  VirtualDevice device;
};

TEST_F(HasWork, FromARecordOnUntilItIsDone) {
  EXPECT_FALSE(has_work(device));
  protocol::RingWriter writer(*device.ring);
  ASSERT_NE(writer.reserve<protocol::RecordHeader>(protocol::RecordType::kMarker, 0), nullptr);
  EXPECT_FALSE(has_work(device));
  writer.publish();
  EXPECT_TRUE(has_work(device));
  device.control->note_cut({1, 64, 0});
  EXPECT_FALSE(has_work(device));
}

TEST_F(HasWork, WhileItsProgramWaitsForMemory) {
  device.task->held_back.push_back(1);
  EXPECT_TRUE(has_work(device));
  device.task->held_back.clear();
  device.task->asked.push_back(1);
  EXPECT_TRUE(has_work(device));
}

}  // namespace
}  // namespace heddle::daemon
