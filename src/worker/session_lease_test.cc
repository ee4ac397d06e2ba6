// What a worker does with its ring's lease: what goes on without it, and what it says to heddled.

#include <gmock/gmock.h>

#include "core/clock.h"
#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::Backlog;
using protocol::Drained;
using protocol::Lease;
using protocol::LeaseReturned;
using protocol::RecordType;
using testing::IsEmpty;
using testing::SizeIs;
using State = protocol::Lease::State;

struct SessionLeaseTest : SessionHarness {
  void SetUp() override {
    SessionHarness::SetUp();
    module_info.kernels.resize(2);
    module_info.kernels[0].name = "nothing";
    module_info.kernels[1].name = "faulty";
    prepare_context = [](FakeContext& device) {
      device.kernels["nothing"] = [](auto) { return 0u; };
      device.kernels["faulty"] = [](auto) { return kCudaIllegalAddress; };
    };
    withdraw();
    start_worker();
    send_module(1);
  }

  // heddled's side.
  void write(const Lease& changed) {
    lease = changed;
    control_page.write_lease(lease);
    protocol::ring_bell(header().to_worker);
  }
  void lend(uint64_t until_ns = UINT64_MAX, bool whole_bursts = false) {
    write({.state = State::kHeld,
           .generation = lease.generation + 1,
           .until_ns = until_ns,
           .whole_bursts = whole_bursts});
  }
  void withdraw() {
    lease.state = State::kWithdrawn;
    write(lease);
  }
  void want() {
    lease.wanted = true;
    write(lease);
  }
  bool is_back(uint64_t generation) {
    return eventually([&] { return last<LeaseReturned>().generation == generation; });
  }
  // What the paused stream has keeps the first lease.
  void expect_back_once_it_goes_on(uint32_t paused) {
    withdraw();
    ::usleep(20'000);
    EXPECT_EQ(told<LeaseReturned>(), 0u) << "it runs";
    context->resume(paused);
    EXPECT_TRUE(is_back(1));
  }
  static uint64_t now_ns() { return static_cast<uint64_t>(MonotonicClock().now().time_since_epoch().count()); }

  Lease lease;
};

TEST_F(SessionLeaseTest, ALaunchWaitsForTheLease) {
  const uint64_t launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 1; }));
  EXPECT_EQ(last<Backlog>().serial, kTaskSerial);
  EXPECT_THAT(context->handed_over(), IsEmpty());
  lend();
  EXPECT_TRUE(completes(launched));
  EXPECT_EQ(told<Backlog>(), 1u);
  EXPECT_EQ(told<LeaseReturned>(), 0u);
}

// Or it would say at the end of all of it only, and run dry until more came.
TEST_F(SessionLeaseTest, TheDeviceIsAskedForTheEndOfPartsOfTheWork) {
  write({.state = State::kHeld, .wanted = true, .generation = 1, .window_ns = 1'000'000});
  EXPECT_TRUE(completes(launch(0, 0)));
  EXPECT_TRUE(eventually([&] { return context->fences == 1; })) << "how long it takes was not known";
}

TEST_F(SessionLeaseTest, WhatNeedsNoDeviceGoesOnUpToTheFirstThatDoes) {
  map(1, kTestBase);
  simple(RecordType::kNeed, 0, 1);
  ASSERT_TRUE(completes(marker()));
  EXPECT_EQ(told<Backlog>(), 0u);
  const uint64_t filled = fill(0, kTestBase, 8, 1), behind = marker();
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 1; }));
  EXPECT_LT(header().completed.load(), filled);
  lend();
  EXPECT_TRUE(completes(behind));
}

TEST_F(SessionLeaseTest, AFreeAndATasksEndNeedNoLease) {
  map(1, kTestBase);
  simple(RecordType::kNeed, 0, 1);
  simple(RecordType::kFree, 0, 1);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  EXPECT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_EQ(last<protocol::SegmentFreed>().number, 1u);
  EXPECT_EQ(told<Backlog>(), 0u);
}

TEST_F(SessionLeaseTest, WhatTheProgramHasFreedGoesBackWhileTheLeaseIsAway) {
  map(1, kTestBase);
  ASSERT_TRUE(completes(simple(RecordType::kNeed, 0, 1)));
  launch(0, 0);
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 1; }));
  header().idle.segments[0] = 1;
  ++header().reclaims;
  protocol::ring_bell(header().to_worker);
  EXPECT_TRUE(eventually([&] { return told<protocol::SegmentFreed>() == 2; }));
  EXPECT_THAT(context->mapped(), IsEmpty());
}

TEST_F(SessionLeaseTest, AWithdrawnLeaseGoesBackOnceWhatIsInFlightIsDone) {
  lend();
  context->pause(0);
  launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  withdraw();
  const uint64_t second = launch(0, 0);
  ::usleep(20'000);
  EXPECT_EQ(told<LeaseReturned>(), 0u);
  EXPECT_THAT(context->handed_over(), SizeIs(1));
  context->resume(0);
  ASSERT_TRUE(is_back(1));
  EXPECT_THAT(context->handed_over(), SizeIs(1));
  EXPECT_EQ(usage().launches, 1u) << "heddled reads what was used when the lease is back";
  lend();
  EXPECT_TRUE(completes(second));
}

TEST_F(SessionLeaseTest, AnIdleWorkerGivesItsLeaseBackAtOnce) {
  lend();
  ASSERT_TRUE(completes(launch(0, 0)));
  withdraw();
  EXPECT_TRUE(is_back(1));
  lend();
  withdraw();
  EXPECT_TRUE(is_back(2));
  EXPECT_EQ(told<LeaseReturned>(), 2u);
}

TEST_F(SessionLeaseTest, ALeaseEndsByItself) {
  lend(now_ns() + 30'000'000);
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_TRUE(is_back(1));
  EXPECT_GE(now_ns(), lease.until_ns);
  const uint64_t launched = launch(0, 0);
  ::usleep(5'000);
  EXPECT_LT(header().completed.load(), launched);
  lend();
  EXPECT_TRUE(completes(launched));
}

// Slices that are shorter than the worker takes to wake up: each is good for something.
TEST_F(SessionLeaseTest, EachLeaseIsGoodForARecordHoweverShort) {
  uint64_t launched = 0;
  for (int i = 0; i < 3; ++i) launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 1; }));
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    lend(now_ns() - 1);
    ASSERT_TRUE(is_back(generation));
    EXPECT_THAT(context->handed_over(), SizeIs(generation));
  }
  EXPECT_TRUE(completes(launched));
}

TEST_F(SessionLeaseTest, TheEndOfWorkIsSaidOnlyWhereOthersWait) {
  lend();
  ASSERT_TRUE(completes(launch(0, 0)));
  ::usleep(20'000);
  EXPECT_EQ(told<Drained>(), 0u);
  want();
  ASSERT_TRUE(eventually([&] { return told<Drained>() == 1; }));
  EXPECT_EQ(last<Drained>().serial, kTaskSerial);
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(told<Backlog>(), 2u);
  EXPECT_TRUE(eventually([&] { return told<Drained>() == 2; }));
}

// Or an idle program would be lent the device time and again.
TEST_F(SessionLeaseTest, TheEndOfWorkIsSaidUnderALeaseThatEnds) {
  lend(now_ns() + 200'000'000);
  ASSERT_TRUE(completes(launch(0, 0)));
  ASSERT_TRUE(eventually([&] { return told<Drained>() == 1; }));
  EXPECT_EQ(told<LeaseReturned>(), 0u);
  ASSERT_TRUE(is_back(1));
  const uint64_t next = launch(0, 0);
  lend();
  EXPECT_TRUE(completes(next));
  EXPECT_EQ(told<Backlog>(), 2u);
}

// The issuer does not let itself be held up by a window that is full: it is woken.
TEST_F(SessionLeaseTest, NoMoreThanTheWindowIsInFlight) {
  write({.state = State::kHeld, .wanted = true, .generation = 1, .window_ns = 1000});
  context->pause(0);
  uint64_t launched = 0;
  for (int i = 0; i < 5; ++i) launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 2; }));
  ::usleep(10'000);
  EXPECT_THAT(context->handed_over(), SizeIs(2));
  context->resume(0);
  EXPECT_TRUE(completes(launched));
}

// Most of that of a program which is alone on its device.
TEST_F(SessionLeaseTest, ShortWorkThatIsInNoBooksKeepsTheLeaseUntilItIsDone) {
  write({.state = State::kHeld, .generation = 1, .window_ns = 1'000'000'000});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(completes(launch(0, 0)));  // known to be short
  context->pause(0);
  uint64_t launched = 0;
  for (size_t i = 0; i < 40; ++i) launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 43; }));
  withdraw();
  ::usleep(10'000);
  EXPECT_EQ(told<LeaseReturned>(), 0u);
  context->resume(0);
  EXPECT_TRUE(is_back(1));
  EXPECT_EQ(header().completed.load(), launched);
}

// Among the records of a ring that never runs dry the issuer looks at its lease all the same.
TEST_F(SessionLeaseTest, RecordsWithoutEndThatNeedNoDeviceDoNotKeepTheLease) {
  std::atomic<int> reached{0}, passed{0};  // of two records at which the issuer is held
  prepare_context = [&](FakeContext& device) {
    device.kernels["nothing"] = [](auto) { return 0u; };
    device.on_set_limit = [&] {
      const int number = ++reached;
      for (int look = 0; look < 5000 && passed < number; ++look) ::usleep(1000);
    };
  };
  const auto hold = [this] {
    return simple(RecordType::kLimit, 0, static_cast<uint64_t>(protocol::LimitKind::kStackBytes), 4096);
  };
  start_worker();
  send_module(1);
  lend();
  ASSERT_TRUE(completes(launch(0, 0)));
  hold();
  for (int i = 0; i < 300; ++i) marker();
  const uint64_t last_record = hold();
  ASSERT_TRUE(eventually([&] { return reached == 1; }));
  withdraw();
  passed = 1;
  EXPECT_TRUE(is_back(1));
  EXPECT_LT(header().completed.load(), last_record);
  passed = 2;
  EXPECT_TRUE(completes(last_record));
}

// A program fills one stream after the other.
TEST_F(SessionLeaseTest, AStreamThatHasItsFillLetsThoseBehindItRunBesideIt) {
  live_stream(1, protocol::kStreamNonBlocking);
  live_stream(2, protocol::kStreamNonBlocking);
  write({.state = State::kHeld, .generation = 1, .window_ns = 1000});
  context->pause(1);
  constexpr size_t kFill = InFlight::kAlone;  // work that was never seen takes a window
  for (size_t i = 0; i < kFill + 10; ++i) launch(1, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == kFill; }));
  ::usleep(10'000);
  EXPECT_THAT(context->handed_over(), SizeIs(kFill)) << "nothing else follows";
  const uint64_t beside = launch(2, 0);
  EXPECT_TRUE(eventually([&] { return stream(2).completed.load() == beside; }));
  EXPECT_THAT(context->handed_over(), SizeIs(kFill + 11));
  context->resume(1);
}

// The work behind a host call would begin with its return.
TEST_F(SessionLeaseTest, AHostCallsStreamGoesOnOnlyUnderALease) {
  live_stream(1, protocol::kStreamNonBlocking);
  lend();
  const uint64_t call = simple(RecordType::kHostCall, 1);
  const uint64_t behind = launch(1, 0);
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == call && context->handed_over().size() == 2; }));
  withdraw();
  ASSERT_TRUE(is_back(1)) << "what waits for the call is not running";
  stream(1).host_done = call;
  protocol::ring_bell(header().to_worker);
  ::usleep(10'000);
  EXPECT_LT(header().completed.load(), call);
  lend();
  EXPECT_TRUE(completes(behind));
}

// Of several streams only those that stand behind the call do not compute.
TEST_F(SessionLeaseTest, WhatRunsBesideAHostCallKeepsTheLeaseUntilItIsDone) {
  live_stream(1, protocol::kStreamNonBlocking);
  live_stream(2, protocol::kStreamNonBlocking);
  lend();
  const uint64_t call = simple(RecordType::kHostCall, 1);
  context->pause(2);
  launch(2, 0);
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == call && context->handed_over().size() == 2; }));
  expect_back_once_it_goes_on(2);
  EXPECT_EQ(usage().launches, 1u);
}

TEST_F(SessionLeaseTest, AStreamThatWaitsForOneBehindAHostCallDoesNotKeepTheLease) {
  live_stream(1, protocol::kStreamNonBlocking);
  live_stream(2, protocol::kStreamNonBlocking);
  lend();
  const uint64_t call = simple(RecordType::kHostCall, 1);
  const uint64_t event = simple(RecordType::kEventRecord, 1, 5);
  simple(RecordType::kEventWait, 2, 5, event);
  const uint64_t behind = launch(2, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 4; }));
  withdraw();
  ASSERT_TRUE(is_back(1));
  stream(1).host_done = call;
  lend();
  EXPECT_TRUE(completes(behind));
}

// Perhaps it is what the call waits for.
TEST_F(SessionLeaseTest, WhatIsQueuedBehindAHostCallDoesNotHoldUpTheOtherStreams) {
  live_stream(1, protocol::kStreamNonBlocking);
  live_stream(2, protocol::kStreamNonBlocking);
  write({.state = State::kHeld, .wanted = true, .generation = 1, .window_ns = 1'000'000'000});
  const uint64_t call = simple(RecordType::kHostCall, 1);
  uint64_t behind = 0;
  for (int i = 0; i < 5; ++i) behind = launch(1, 0);
  const uint64_t beside = launch(2, 0);
  EXPECT_TRUE(eventually([&] { return stream(2).completed.load() == beside; }));
  stream(1).host_done = call;
  protocol::ring_bell(header().to_worker);
  EXPECT_TRUE(completes(behind));
}

// The client declares modules without waiting: a launch may come before its module, and is tried again and again.
TEST_F(SessionLeaseTest, ALaunchThatWaitedForItsModuleDoesNotKeepTheLease) {
  live_stream(1, protocol::kStreamNonBlocking);
  live_stream(2, protocol::kStreamNonBlocking);
  lend();
  context->pause(1);
  launch(1, 0);
  const uint64_t waited = launch(2, 0, {}, 2);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  for (int i = 0; i < 5; ++i) {
    protocol::ring_bell(header().to_worker);
    ::usleep(2'000);
  }
  send_module(2);
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == waited; }));
  context->resume(1);
  withdraw();
  EXPECT_TRUE(is_back(1));
}

// Textures, symbols, libraries: written with stream 0, and nothing that the device waits for.
TEST_F(SessionLeaseTest, RecordsThatTheDeviceNeverSeesStandBehindNoHostCall) {
  live_stream(1);
  live_stream(2);
  lend();
  simple(RecordType::kHostCall, 1);
  simple(RecordType::kLimit, 0, static_cast<uint64_t>(protocol::LimitKind::kPendingLaunches), 4096);
  context->pause(2);
  launch(2, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 2; }));
  expect_back_once_it_goes_on(2);
}

// An event that stands before the call: who waits for it does not stand behind the call.
TEST_F(SessionLeaseTest, AnEventBeforeAHostCallHoldsNobody) {
  live_stream(1, protocol::kStreamNonBlocking);
  live_stream(2, protocol::kStreamNonBlocking);
  lend();
  context->pause(1);
  launch(1, 0);
  const uint64_t event = simple(RecordType::kEventRecord, 1, 5);
  simple(RecordType::kHostCall, 1);
  context->pause(2);
  simple(RecordType::kEventWait, 2, 5, event);
  launch(2, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 5; }));
  context->resume(1);
  expect_back_once_it_goes_on(2);
}

TEST_F(SessionLeaseTest, AHostCallWithNothingBehindItNeedsNoLease) {
  live_stream(1);
  const uint64_t call = simple(RecordType::kHostCall, 1);
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == call; }));
  stream(1).host_done = call;
  protocol::ring_bell(header().to_worker);
  EXPECT_TRUE(completes(call));
  EXPECT_EQ(told<Backlog>(), 0u);
}

TEST_F(SessionLeaseTest, AfterAFaultNothingWaitsForALease) {
  lend();
  context->pause(0);
  launch(0, 1);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  withdraw();
  const uint64_t behind = launch(0, 0);
  context->resume(0);
  EXPECT_TRUE(completes(behind));
  EXPECT_TRUE(is_back(1));
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  EXPECT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
}

TEST_F(SessionLeaseTest, ABurstThatWouldNotEndInTimeGivesTheLeaseBack) {
  write({.state = State::kHeld, .generation = 1});
  context->pause(0);
  const uint64_t slow = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  ::usleep(300'000);
  context->resume(0);
  ASSERT_TRUE(completes(slow));
  withdraw();
  ASSERT_TRUE(is_back(1));
  lend(now_ns() + 250'000'000, true);
  ASSERT_TRUE(completes(launch(0, 0))) << "the first one is begun all the same";
  const size_t before = context->handed_over().size();
  const uint64_t next = launch(0, 0);
  ASSERT_TRUE(is_back(2));
  EXPECT_THAT(context->handed_over(), SizeIs(before));
  lend();
  EXPECT_TRUE(completes(next));
}

// Or a lessee would be lent the device for as long as it had to wait for it.
TEST_F(SessionLeaseTest, WaitingForTheLeaseIsNoPartOfABurst) {
  const uint64_t launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 1; }));
  ::usleep(300'000);
  lend();
  ASSERT_TRUE(completes(launched));
  ASSERT_TRUE(eventually([&] { return usage().bursts == 1; }));
  EXPECT_LT(usage().longest_burst_ns, 250'000'000u);
}

TEST_F(SessionLeaseTest, NorIsItBehindAHostCall) {
  live_stream(1, protocol::kStreamNonBlocking);
  lend();
  const uint64_t call = simple(RecordType::kHostCall, 1);
  const uint64_t behind = launch(1, 0);
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == call && context->handed_over().size() == 2; }));
  withdraw();
  ASSERT_TRUE(is_back(1));
  ::usleep(300'000);
  stream(1).host_done = call;
  lend();
  ASSERT_TRUE(completes(behind));
  ASSERT_TRUE(eventually([&] { return usage().bursts == 1; }));
  EXPECT_LT(usage().longest_burst_ns, 250'000'000u);
}

// A worker that takes the ring over finds the lease of its forerunner.
TEST_F(SessionLeaseTest, AnotherWorkerGoesByThePage) {
  lend();
  ASSERT_TRUE(completes(launch(0, 0)));
  withdraw();
  ASSERT_TRUE(is_back(1));
  start_worker();
  send_module(1);
  const uint64_t launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 2; }));
  EXPECT_THAT(context->handed_over(), IsEmpty());
  lend();
  EXPECT_TRUE(completes(launched));
}

// heddled was restarted under a policy with leases.
TEST_F(SessionLeaseTest, WhereLeasesBeginWhatWasHandedOverBeforeIsDrainedFirst) {
  lease.state = State::kOpen;
  write(lease);
  context->pause(0);
  launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  write({.state = State::kWithdrawn, .generation = 1});
  ::usleep(10'000);
  EXPECT_EQ(told<LeaseReturned>(), 0u);
  context->resume(0);
  EXPECT_TRUE(is_back(1));
}

// heddled was restarted under a policy without leases.
TEST_F(SessionLeaseTest, WhereLeasesEndEverybodyGoesOn) {
  const uint64_t launched = launch(0, 0);
  ASSERT_TRUE(eventually([&] { return told<Backlog>() == 1; }));
  lease.state = State::kOpen;
  write(lease);
  EXPECT_TRUE(completes(launched));
  const size_t said = told<Backlog>() + told<Drained>() + told<LeaseReturned>();
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(told<Backlog>() + told<Drained>() + told<LeaseReturned>(), said);
}

}  // namespace
}  // namespace heddle::worker
