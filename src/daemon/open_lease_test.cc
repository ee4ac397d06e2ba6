#include "daemon/open_lease.h"

#include <gtest/gtest.h>

namespace heddle::daemon {
namespace {

using protocol::Lease;
using State = Lease::State;

constexpr Duration kWindow = std::chrono::milliseconds(2);

// A session with a task and one segment.
struct OpenLease : ::testing::Test {
  OpenLease() {
    session.devices.resize(1);
    device().control = std::move(protocol::ControlPage::create()->second);
    device().task = std::make_unique<Task>();
    segment().virtual_device = 0;
    segment().bytes = Bytes{8 * kMiB};
  }
  VirtualDevice& device() { return session.devices[0]; }
  Segment& segment() { return session.segments[1]; }
  Lease written() {
    write_open_lease(session, device(), kWindow);
    Lease lease;
    EXPECT_TRUE(device().control->read_lease(lease));
    return lease;
  }

  Session session;
};

TEST_F(OpenLease, IsAsIfThereWereNone) {
  EXPECT_EQ(written().word(), Lease{}.word());
}

TEST_F(OpenLease, BoundsTheWorkOfATaskWithMemoryOnTheHost) {
  segment().swap.place = Segment::Swap::kOnHost;
  const Lease lease = written();
  EXPECT_EQ(lease.state, State::kHeld);
  EXPECT_TRUE(lease.wanted);
  EXPECT_EQ(lease.until_ns, UINT64_MAX);
  EXPECT_EQ(lease.window_ns, uint64_t(kWindow.count()));
  EXPECT_EQ(lease.generation, 1u) << "0 is never lent";
  EXPECT_EQ(written().generation, 1u) << "it stands";
}

TEST_F(OpenLease, BoundsNothingOnceAllOfItIsOnTheDevice) {
  segment().swap.place = Segment::Swap::kPromoting;
  EXPECT_EQ(written().state, State::kHeld);
  segment().swap.place = Segment::Swap::kNone;
  EXPECT_EQ(written().state, State::kOpen);
  segment().swap.place = Segment::Swap::kOnHost;
  EXPECT_EQ(written().generation, 2u);
}

TEST_F(OpenLease, BoundsNothingWhereWhatLiesOnTheHostStaysThere) {
  segment().swap.place = Segment::Swap::kOnHost;
  device().task->keeps_on_host = true;
  EXPECT_EQ(written().state, State::kOpen);
}

TEST_F(OpenLease, TakesThePlaceOfAnotherPolicys) {
  device().control->write_lease({.state = State::kHeld, .generation = 4, .until_ns = 1000});
  EXPECT_EQ(written().state, State::kOpen);
  segment().swap.place = Segment::Swap::kOnHost;
  device().control->write_lease({.state = State::kHeld, .wanted = true, .generation = 4, .until_ns = 1000});
  const Lease lease = written();
  EXPECT_EQ(lease.generation, 5u);
  EXPECT_EQ(lease.until_ns, UINT64_MAX);
}

}  // namespace
}  // namespace heddle::daemon
