#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "policy/deadline/test_devices.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Batch with work for ever on one device, and a request of the SLO of 200 ms.
class Behind {
 public:
  explicit Behind(const char* policy) : devices(policy, 1) {
    devices.batch(1, 0, 0);
    EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  }
  // Eight revocations took so long each.
  void measured(double took) {
    for (int round = 0; round < 8; ++round, now += 1000) {
      devices.works(800, 0, JobClass::kUserFacing, now + 10);
      devices.decide(now + 10);
      devices.returned(1, 0, now + 10 + took);
      devices.decide(now + 10 + took);
      devices.ends(800, 0, now + 20 + took, 0);
      devices.decide(now + 20 + took);
    }
    EXPECT_EQ(devices.revocation(0).time, ms(took));
  }

  Devices devices;
  double now = 0;
};

TEST(RevocationTimes, ForgetWhatWasSlowOnce) {
  RevocationTimes times;
  EXPECT_EQ(times.longest(), Duration{});
  for (int i = 0; i < 8; ++i) times.add(ms(300));
  EXPECT_EQ(times.longest(), ms(300));
  for (int i = 0; i < 192; ++i) times.add(ms(5));
  EXPECT_NEAR(double(times.longest().count()), double(ms(5).count()), 2e5);
  EXPECT_EQ(times.count(), 200u);
}

// What once took longer than the SLO may be quicker the next time, and is only found out by trying.
TEST(Starvation, RevocationsThatTookLongerThanTheSloDoNotEndThem) {
  Behind batch("priority:soft");
  batch.measured(300);
  batch.devices.request(2, batch.now + 500);
  EXPECT_THAT(batch.devices.place(batch.now + 500, {2}), IsEmpty());
  EXPECT_THAT(batch.devices.decide(batch.now + 500), ElementsAre("0: withdraw 1"));
  batch.devices.returned(1, 0, batch.now + 900);
  EXPECT_THAT(batch.devices.place(batch.now + 900, {2}), ElementsAre("2 on 0"))
      << "late, and before batch all the same";
}

// At once, or when what seemed to end in time did not.
TEST(Starvation, TerminationsThatTookLongerThanTheSloDoNotEndThem) {
  Behind batch("priority:hard");
  for (int round = 0; round < 8; ++round, batch.now += 1000) {
    batch.devices.in_flight(1, 5000, 0);
    batch.devices.works(800, 0, JobClass::kUserFacing, batch.now + 10);
    EXPECT_THAT(batch.devices.decide(batch.now + 10), ElementsAre("0: terminate 1"));
    batch.devices.returned(1, 0, batch.now + 310);
    batch.devices.decide(batch.now + 310);
    batch.devices.ends(800, 0, batch.now + 320, 0);
    batch.devices.decide(batch.now + 320);
  }
  batch.devices.in_flight(1, 0, 0);
  batch.devices.request(2, batch.now + 500);
  EXPECT_THAT(batch.devices.decide(batch.now + 500), ElementsAre("0: withdraw 1"));
  EXPECT_EQ(batch.devices.next(0, batch.now + 500), moment(batch.now + 690)) << "requests have it for 10 ms";
  batch.devices.in_flight(1, 150, 0);
  EXPECT_THAT(batch.devices.decide(batch.now + 600), ElementsAre("0: terminate 1"));
}

// Requests of 300 ms are late from the start on.
TEST(Starvation, ALateRequestHasADeviceTakenBackAtOnce) {
  Devices devices("priority:soft", 3);
  devices.known("app", 300);
  for (const uint64_t session : {1, 2, 3}) devices.batch(session, session - 1, 0);
  devices.decide(0);
  devices.request(4, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_THAT(devices.decide(2000), IsEmpty()) << "one for each request";
  devices.request(5, 2000);
  EXPECT_THAT(devices.decide(2000), ElementsAre("1: withdraw 2"));
}

TEST(Starvation, ALateRequestThatHasADeviceHasItTakenBackAtOnce) {
  Behind batch("priority:soft");
  batch.devices.known("app", 300);
  batch.devices.works(2, 0, JobClass::kUserFacing, 10);
  EXPECT_THAT(batch.devices.decide(10), ElementsAre("0: withdraw 1"));
}

// What is on its way for a late request is the one's that can still end in time.
TEST(Starvation, WhatIsTakenBackForALateRequestGoesToOneThatIsNot) {
  Devices devices("priority:hard", 2);
  devices.known("long", 300);
  devices.known("short", 40);
  for (const uint64_t session : {1, 2}) devices.batch(session, session - 1, 0);
  devices.decide(0);
  for (const uint64_t session : {1, 2}) devices.in_flight(session, 5000, 0);
  devices.request(4, 10, "long");
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  devices.request(5, 20, "short");
  EXPECT_THAT(devices.decide(20), ElementsAre("0: terminate 1", "1: withdraw 2"));
  EXPECT_THAT(devices.decide(500), IsEmpty());
}

// All devices decide anew then, as what is in flight is waited for less long.
TEST(Starvation, ARequestInTimeIsPlannedForWhereALateOneHadTheDeviceTakenBack) {
  Behind batch("priority:hard");
  batch.devices.known("long", 300);
  batch.devices.known("short", 40);
  batch.devices.request(2, 10, "long");
  EXPECT_THAT(batch.devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_TRUE(batch.devices.plan(10));
  EXPECT_FALSE(batch.devices.plan(15));
  batch.devices.request(3, 20, "short");
  EXPECT_TRUE(batch.devices.plan(20));
  EXPECT_EQ(batch.devices.next(0, 20), moment(158));
}

// No work is lost for a request that is late anyhow, but for batch that has had its turn.
TEST(Starvation, UnderHardALateRequestWaitsForATurnAndATermination) {
  Behind batch("priority:hard");
  batch.devices.known("app", 300);
  batch.devices.in_flight(1, 60'000, 0);
  batch.devices.request(2, 10);
  EXPECT_THAT(batch.devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_EQ(batch.devices.next(0, 10), moment(1000));
  EXPECT_THAT(batch.devices.decide(999), IsEmpty());
  EXPECT_THAT(batch.devices.decide(1000), ElementsAre("0: terminate 1"));
}

// It waits for memory: each try costs batch a drain, so batch has a turn between two.
TEST(Starvation, ALateRequestThatCannotBePlacedLetsBatchHaveItsTurns) {
  Behind batch("priority:soft");
  batch.devices.known("app", 300);
  batch.devices.request(2, 10);
  EXPECT_THAT(batch.devices.decide(10), ElementsAre("0: withdraw 1"));
  for (const double at : {20, 1030, 2040}) {
    batch.devices.returned(1, 0, at);
    batch.devices.place(at, {});
    EXPECT_THAT(batch.devices.decide(at), ElementsAre("0: lend 1"));
    EXPECT_THAT(batch.devices.decide(at + 999), IsEmpty());
    EXPECT_EQ(batch.devices.next(0, at + 999), moment(at + 1000));
    EXPECT_THAT(batch.devices.decide(at + 1000), ElementsAre("0: withdraw 1"));
  }
}

// Nor is any of batch's work lost for it, which may be what gives that memory back.
TEST(Starvation, UnderHardNothingIsTerminatedForALateRequestThatCannotBePlaced) {
  Behind batch("priority:hard");
  batch.devices.known("app", 300);
  batch.devices.request(2, 10);
  batch.devices.decide(10);
  batch.devices.returned(1, 0, 20);
  batch.devices.place(20, {});
  EXPECT_THAT(batch.devices.decide(20), ElementsAre("0: lend 1"));
  EXPECT_THAT(batch.devices.decide(1020), ElementsAre("0: withdraw 1"));
  EXPECT_THAT(batch.devices.decide(5000), IsEmpty());
}

TEST(Starvation, ALateRequestThatCannotBePlacedIsInNoOthersWay) {
  Devices devices("priority:soft", 1);
  devices.known("app", 300);
  devices.request(2, 10);
  devices.request(3, 20);
  EXPECT_THAT(devices.place(20, {3}), ElementsAre("3 on 0"));
}

class ByTurns : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// Where nothing is revoked, or where only reserved devices are, late requests end batch's turns. For ten seconds there
// has been no request: none is reserved.
TEST_P(ByTurns, ALateRequestWaitsForATurn) {
  const auto [policy, order] = GetParam();
  Devices devices(policy, 1);
  devices.known("app", 300);
  devices.place(10'000, {});
  devices.place(12'000, {});
  devices.batch(1, 0, 20'000);
  EXPECT_THAT(devices.decide(20'000), ElementsAre("0: lend 1"));
  devices.request(2, 20'010);
  EXPECT_THAT(devices.decide(20'010), IsEmpty());
  EXPECT_EQ(devices.next(0, 20'010), moment(21'000));
  EXPECT_THAT(devices.decide(21'000), ElementsAre(order));
  devices.returned(1, 0, 21'001);
  EXPECT_THAT(devices.place(21'001, {2}), ElementsAre("2 on 0"));
}

INSTANTIATE_TEST_SUITE_P(Starvation, ByTurns,
                         testing::Values(std::tuple("priority:off", "0: withdraw 1"),
                                         std::tuple("elastic:off", "0: withdraw 1"),
                                         std::tuple("elastic:soft", "0: withdraw 1"),
                                         std::tuple("elastic:hard", "0: terminate 1")));

// In time as long as nothing is known of it: it is late after 200 ms, and batch's turn was over long before.
TEST(Starvation, WithoutRevocationATurnEndsWhenARequestIsLate) {
  Behind batch("priority:off");
  batch.devices.request(2, 5000);
  EXPECT_THAT(batch.devices.decide(5000), IsEmpty());
  const auto next = batch.devices.next(0, 5000);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, moment(5200) + Duration(1));
  EXPECT_THAT(batch.devices.decide(5201), ElementsAre("0: withdraw 1"));
}

// No number of devices serves them in time, so one is kept.
TEST(Starvation, ElasticReservesADeviceForRequestsWhoseSloIsShorterThanARevocation) {
  Devices devices("elastic:soft", 2);
  for (const uint64_t session : {1, 2}) devices.batch(session, session - 1, 0);
  devices.decide(0);
  Tenant hurried = Devices::tenant(JobClass::kUserFacing);
  hurried.slo = ms(20);
  devices.request(3, 10, hurried);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1")) << "a revocation takes 22 ms";
}

// A batch task that was placed and does nothing: the next one goes elsewhere at first, and does not wait for ever.
class Awaited : public testing::TestWithParam<const char*> {
 protected:
  Awaited() {
    devices.batch_waits(1, 0);
    EXPECT_THAT(devices.place(0, {1}), ElementsAre("1 on 0"));
    devices.joins(1, 0, JobClass::kBatch, 0);
    devices.batch_waits(2, 10);
    EXPECT_THAT(devices.place(10, {2}), IsEmpty());
  }
  void expect_given_up_at(double when) {
    devices.plan(when - 10);
    EXPECT_EQ(devices.next(0, when - 10), moment(when));
    EXPECT_FALSE(devices.plan(when - 1));
    EXPECT_THAT(devices.place(when - 1, {2}), IsEmpty());
    EXPECT_TRUE(devices.plan(when));
    EXPECT_THAT(devices.place(when, {2}), ElementsAre("2 on 0"));
  }
  Devices devices{GetParam(), 1};
};

TEST_P(Awaited, ABatchTaskWhoseWorkerDoesNotComeIsGivenUpAfterTwoSeconds) {
  expect_given_up_at(2000);
}

TEST_P(Awaited, OneThatDoesNotBeginIsGivenUpATurnBehindItsWorker) {
  devices.ready(1, 300);
  expect_given_up_at(1300);
}

TEST_P(Awaited, OneThatHasBegunIsNot) {
  devices.ready(1, 300);
  devices.begins(1, 400);
  devices.decide(400);
  EXPECT_THAT(devices.place(5000, {2}), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Under, Awaited,
                         testing::Values("fifo", "priority:off", "priority:soft", "priority:hard", "priority:share",
                                         "elastic:soft", "elastic:hard"));

}  // namespace
}  // namespace heddle::policy
