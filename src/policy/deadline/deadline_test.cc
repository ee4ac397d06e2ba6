#include "policy/deadline/deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/deadline/test_devices.h"
#include "policy/dispatch/table.h"
#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Priority, RequestsGoToIdleDevicesAndNobodyIsRevoked) {
  Devices devices("priority:soft", 2);
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.request(2, 5);
  EXPECT_THAT(devices.place(5, {2}), ElementsAre("2 on 1"));
  devices.works(2, 1, JobClass::kUserFacing, 5);
  EXPECT_THAT(devices.decide(5), ElementsAre("1: lend 2"));
}

TEST(Priority, TheDeviceWithTheLeastWorkToLoseIsRevoked) {
  Devices devices("priority:soft", 3);
  for (const uint64_t session : {1, 2, 3}) devices.batch(session, session - 1, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1", "1: lend 2", "2: lend 3"));
  devices.in_flight(1, 50, 300);
  devices.in_flight(2, 50, 100);
  devices.in_flight(3, 50, 200);
  devices.request(4, 10);
  EXPECT_THAT(devices.place(10, {4}), IsEmpty());
  EXPECT_THAT(devices.decide(10), ElementsAre("1: withdraw 2"));
  devices.request(5, 11);
  EXPECT_THAT(devices.decide(11), ElementsAre("2: withdraw 3"));
  EXPECT_THAT(devices.decide(12), IsEmpty()) << "one for each request";
  devices.returned(2, 1, 15);
  EXPECT_THAT(devices.decide(15), IsEmpty()) << "batch is not lent it again before the request is placed";
  EXPECT_THAT(devices.place(15, {5, 4}), ElementsAre("4 on 1"));
}

// Its worker takes 300 ms to start, and its program a moment to go on.
TEST(Priority, APlacedRequestHasItsDeviceKeptForItUntilItCanBegin) {
  Devices devices("priority:off", 1);
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.batch(3, 0, 0);
  devices.request(2, 10);
  devices.ends(1, 0, 50);
  EXPECT_THAT(devices.place(50, {2}), ElementsAre("2 on 0"));
  devices.joins(2, 0, JobClass::kUserFacing, 50);
  EXPECT_THAT(devices.decide(50), IsEmpty());
  EXPECT_THAT(devices.decide(340), IsEmpty());
  EXPECT_EQ(devices.next(0, 340), moment(2050)) << "should that worker never come";
  devices.ready(2, 350);
  EXPECT_THAT(devices.decide(350), IsEmpty());
  EXPECT_EQ(devices.next(0, 350), moment(360));
  EXPECT_THAT(devices.decide(359), IsEmpty());
  EXPECT_THAT(devices.decide(360), ElementsAre("0: lend 3")) << "it is slow to go on";
}

// Not as a request that waited for a device and then as one that began there.
TEST(Priority, ARequestIsOne) {
  Devices devices("priority:off", 1);
  devices.request(2, 0);
  EXPECT_THAT(devices.place(0, {2}), ElementsAre("2 on 0"));
  devices.joins(2, 0, JobClass::kUserFacing, 0);
  devices.ready(2, 20);
  devices.begins(2, 25);
  EXPECT_THAT(devices.decide(25), ElementsAre("0: lend 2"));
  EXPECT_EQ(devices.state().find(lessee(2))->arrival, moment(0)) << "its SLO counts from then on";
  devices.ends(2, 0, 120);
  EXPECT_NEAR(devices.state().rates().load(moment(120)), 0.1, 1e-9) << "one in a second, which had it for 100 ms";
}

TEST(Priority, AProgramThatGoesOnLateBeginsItsRequestThen) {
  Devices devices("priority:off", 1);
  devices.request(2, 0);
  EXPECT_THAT(devices.place(0, {2}), ElementsAre("2 on 0"));
  devices.joins(2, 0, JobClass::kUserFacing, 0);
  devices.ready(2, 20);
  devices.begins(2, 221);
  EXPECT_EQ(devices.state().find(lessee(2))->arrival, moment(221));
}

TEST(Priority, WithoutRevocationBurstsEnd) {
  Devices devices("priority:off", 1);
  devices.batch(1, 0, 0);
  devices.batch(2, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.request(3, 10);
  EXPECT_THAT(devices.decide(10), IsEmpty());
  devices.ends(1, 0, 50);
  EXPECT_THAT(devices.place(50, {3}), ElementsAre("3 on 0"));
  devices.works(3, 0, JobClass::kUserFacing, 50);
  EXPECT_THAT(devices.decide(50), ElementsAre("0: lend 3")) << "before the other batch lessee";
}

// What was to end after 50 ms has not, and the request has to begin at 170 and a revocation takes 22.
TEST(Priority, HardRevocationTerminatesWhatDoesNotDrainInTime) {
  Devices devices("priority:hard", 1);
  devices.known("app", 40);
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.in_flight(1, 50, 100);
  devices.request(2, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_EQ(devices.next(0, 10), moment(148));
  devices.in_flight(1, 5, 150);
  EXPECT_THAT(devices.decide(147), IsEmpty());
  EXPECT_THAT(devices.decide(148), ElementsAre("0: terminate 1"));
  EXPECT_THAT(devices.decide(149), IsEmpty());
}

// Which of both this one is nobody knows.
TEST(Priority, ARequestIsLeftWhatMostOfItsLikeTook) {
  Devices devices("priority:hard", 1);
  for (const double busy : {20, 60, 20, 60, 20, 60, 20, 60}) {
    devices.works(900, 0, JobClass::kUserFacing, 0);
    devices.ends(900, 0, 0, busy);
  }
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.request(2, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_EQ(devices.next(0, 10), moment(10 + 200 - 60 - 22));
}

TEST(Priority, HardRevocationTerminatesAtOnceWhatWouldMakeTheRequestLate) {
  Devices devices("priority:hard", 1);
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.in_flight(1, 5000, 100);
  devices.request(2, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: terminate 1"));
}

// A request of 40 ms on the first device, and batch on the second, in a kernel of seconds.
Devices request_beside_batch() {
  Devices devices("priority:hard", 2);
  devices.known("app", 40);
  devices.works(2, 0, JobClass::kUserFacing, 0);
  devices.batch(1, 1, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 2", "1: lend 1"));
  devices.in_flight(1, 5000, 100);
  return devices;
}

TEST(Priority, NoWorkIsLostForARequestThatEndsInTimeElsewhere) {
  Devices devices = request_beside_batch();
  devices.request(3, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("1: withdraw 1"));
  EXPECT_EQ(devices.next(1, 10), moment(20)) << "to look again";
  EXPECT_THAT(devices.decide(40), IsEmpty());
  devices.ends(2, 0, 40, 40);
  EXPECT_THAT(devices.place(40, {3}), ElementsAre("3 on 0"));
}

TEST(Priority, WhatTakesLongerThanItsLikeIsNotReliedOn) {
  Devices devices = request_beside_batch();
  devices.request(3, 10);
  devices.decide(10);
  EXPECT_THAT(devices.decide(40), IsEmpty());
  EXPECT_THAT(devices.decide(41), ElementsAre("1: terminate 1"));
}

// Five of them, one after the other behind the one on the first device, would end at 240.
TEST(Priority, WorkIsLostForRequestsOfWhichNotAllEndInTimeElsewhere) {
  Devices devices = request_beside_batch();
  for (const uint64_t session : {3, 4, 5, 6}) devices.request(session, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("1: withdraw 1")) << "the last one by 200";
  devices.request(7, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("1: terminate 1"));
}

// A program's first request loads its modules. The next one would not be in time if it took as long.
TEST(Priority, ASlowFirstRequestMakesTheNextOneNotLate) {
  Devices devices("priority:hard", 1);
  devices.works(2, 0, JobClass::kUserFacing, 0);
  devices.ends(2, 0, 300, 300);
  devices.batch(1, 0, 300);
  EXPECT_THAT(devices.decide(300), ElementsAre("0: lend 1"));
  devices.in_flight(1, 5000, 100);
  devices.request(2, 400);
  EXPECT_THAT(devices.decide(400), ElementsAre("0: terminate 1"));
}

// Nothing is known of how long what is in flight takes, and the first victim turns out not to outlive its worker.
TEST(Priority, WhereALesseeIsNotTerminatedAnotherOneIs) {
  Devices devices("priority:hard", 2);
  for (const uint64_t session : {1, 2}) devices.batch(session, session - 1, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1", "1: lend 2"));
  devices.in_flight(1, 0, 10);
  devices.in_flight(2, 0, 100);
  devices.request(3, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_THAT(devices.decide(188), ElementsAre("0: terminate 1"));
  devices.not_terminated(1, 0, 188);
  EXPECT_THAT(devices.decide(188), ElementsAre("1: terminate 2"));
  devices.not_terminated(2, 1, 188);
  EXPECT_THAT(devices.decide(189), IsEmpty()) << "both drain";
  devices.returned(1, 0, 195);
  EXPECT_THAT(devices.place(195, {3}), ElementsAre("3 on 0"));
}

TEST(Priority, WhoWouldNotOutliveItsWorkerIsRevokedLast) {
  for (const char* policy : {"priority:hard", "elastic:hard"}) {
    SCOPED_TRACE(policy);
    Devices devices(policy, 2);
    for (const uint64_t session : {1, 2}) devices.batch(session, session - 1, 0);
    EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1", "1: lend 2"));
    devices.in_flight(1, 0, 10, true);
    devices.in_flight(2, 0, 100);
    devices.request(3, 10);
    EXPECT_THAT(devices.decide(10), ElementsAre("1: withdraw 2"));
  }
}

// One request has one device taken back for it, and no second one that would drain too.
TEST(Priority, AnotherThatWouldDrainTooIsLeftAlone) {
  Devices devices("priority:hard", 2);
  for (const uint64_t session : {1, 2}) devices.batch(session, session - 1, 0);
  devices.decide(0);
  devices.in_flight(1, 0, 10, true);
  devices.in_flight(2, 0, 100, true);
  devices.request(3, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  EXPECT_THAT(devices.decide(188), ElementsAre("0: terminate 1")) << "what is in the way may have passed";
  devices.not_terminated(1, 0, 188);
  EXPECT_THAT(devices.decide(189), IsEmpty());
}

// What was in the way may have passed; but a worker that does not stop is not stopped again and again.
TEST(Priority, ATerminationThatCameToNothingIsTriedAgain) {
  Devices devices("priority:hard", 1);
  devices.batch(1, 0, 0);
  devices.decide(0);
  devices.works(2, 0, JobClass::kUserFacing, 10);
  devices.decide(10);
  EXPECT_THAT(devices.decide(188), ElementsAre("0: terminate 1"));
  devices.not_terminated(1, 0, 188);
  EXPECT_THAT(devices.decide(300), IsEmpty());
  EXPECT_EQ(devices.next(0, 300), moment(310)) << "to look again";
  devices.in_flight(1, 0, 0, false);
  EXPECT_THAT(devices.decide(310), IsEmpty());
  EXPECT_THAT(devices.decide(387), IsEmpty());
  EXPECT_THAT(devices.decide(388), ElementsAre("0: terminate 1"));
}

// On one device after 5 ms, on the other after 40, eight times each.
TEST(Priority, WhatARevocationTakesIsMeasuredForEachDevice) {
  Devices devices("priority:soft", 3);
  EXPECT_EQ(devices.revocation(0).time, ms(22));
  for (const uint64_t device : {0, 1}) {
    for (int round = 0; round < 8; ++round) {
      const double at = 1000.0 * round;
      devices.batch(1, device, at);
      devices.decide(at);
      devices.works(2, device, JobClass::kUserFacing, at + 10);
      EXPECT_EQ(devices.decide(at + 10).size(), 1u);
      devices.returned(1, device, at + 10 + (device == 0 ? 5 : 40));
      devices.ends(2, device, at + 500);
      devices.ends(1, device, at + 500);
    }
  }
  EXPECT_EQ(devices.revocation(0).time, ms(5));
  EXPECT_EQ(devices.revocation(1).time, ms(40));
  EXPECT_EQ(devices.revocation(1).measured, 8u);
  EXPECT_EQ(devices.revocation(2).time, ms(40)) << "of all, where nothing is known of the one";
}

TEST(Priority, ALesseeThatHasADeviceWaitsForThatOne) {
  Devices devices("priority:soft", 2);
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.works(2, 0, JobClass::kUserFacing, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("0: withdraw 1"));
  devices.returned(1, 0, 12);
  EXPECT_THAT(devices.decide(12), ElementsAre("0: lend 2"));
}

TEST(Deadlines, RequestsGoByDeadlineAndLateOnesBehind) {
  Devices devices("priority:soft", 1);
  devices.known("app", 40);
  devices.works(1, 0, JobClass::kUserFacing, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.request(2, 1);
  devices.request(3, 30);
  devices.request(4, 120);
  devices.ends(1, 0, 165, 165);  // the second could end at 205 at best, and had to by 201
  EXPECT_THAT(devices.place(165, {2, 3, 4}), ElementsAre("3 on 0"));
  devices.works(3, 0, JobClass::kUserFacing, 165);
  EXPECT_THAT(devices.decide(165), ElementsAre("0: lend 3"));
  devices.ends(3, 0, 205, 40);
  EXPECT_THAT(devices.place(205, {2, 3, 4}), ElementsAre("4 on 0"));
  devices.works(4, 0, JobClass::kUserFacing, 205);
  devices.ends(4, 0, 245, 40);
  EXPECT_THAT(devices.place(245, {2, 3, 4}), ElementsAre("2 on 0")) << "late, but not forgotten";
}

// Three requests at once, of which two fit into 200 ms.
TEST(Deadlines, WhereNotAllCanEndInTimeTheLongestIsGivenUp) {
  Devices devices("priority:soft", 1);
  devices.known("long", 150);
  devices.known("short", 60);
  devices.request(1, 0, "long");
  devices.request(2, 0, "short");
  devices.request(3, 0, "short");
  EXPECT_THAT(devices.place(0, {1, 2, 3}), ElementsAre("2 on 0"));
  devices.works(2, 0, JobClass::kUserFacing, 0, "short");
  devices.ends(2, 0, 60, 60);
  EXPECT_THAT(devices.place(60, {1, 3}), ElementsAre("3 on 0"));
}

TEST(Deadlines, BatchLesseesTakeTurnsOfASecond) {
  Devices devices("elastic:off", 1);
  devices.batch(1, 0, 0);
  devices.batch(2, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  EXPECT_EQ(devices.next(0, 0), moment(1000));
  EXPECT_THAT(devices.decide(1000), ElementsAre("0: withdraw 1"));
  devices.returned(1, 0, 1001);
  EXPECT_THAT(devices.decide(1001), ElementsAre("0: lend 2"));
}

TEST(Deadlines, BatchIsPlacedWhereNobodyHasWork) {
  Devices devices("priority:soft", 2);
  devices.batch(1, 0, 0);
  devices.decide(0);
  devices.batch_waits(2, 1);
  devices.batch_waits(3, 1);
  EXPECT_THAT(devices.place(1, {2, 3}), ElementsAre("2 on 1"));
  devices.request(4, 1);
  EXPECT_THAT(devices.place(1, {2, 3, 4}), ElementsAre("4 on 1")) << "the idle one is the request's";
}

TEST(Elastic, KeepsAsManyDevicesAsRequestsNeedAndBatchOffThem) {
  Devices devices("elastic:soft", 4);
  // 100 requests a second of 16 ms: two devices are busy for 0.8 of their time.
  for (int i = 0; i < 200; ++i) {
    devices.works(100, 3, JobClass::kUserFacing, 10 * i);
    devices.ends(100, 3, 10 * i, 15.9);
  }
  devices.batch_waits(1, 2000);
  devices.batch_waits(2, 2000);
  devices.batch_waits(3, 2000);
  EXPECT_THAT(devices.place(2000, {1, 2, 3}), ElementsAre("1 on 2", "2 on 3"));
  for (const uint64_t session : {1, 2}) devices.batch(session, session + 1, 2000);
  devices.batch_waits(4, 13'000);
  EXPECT_EQ(devices.place(13'000, {3, 4}).size(), 0u) << "fewer would do from now on";
  EXPECT_EQ(devices.place(16'900, {3, 4}).size(), 0u) << "not for long enough yet";
  EXPECT_EQ(devices.place(17'000, {3, 4}).size(), 2u);
}

TEST(Elastic, ABatchLesseeOnADeviceThatComesInIsRevoked) {
  Devices devices("elastic:soft", 2);
  for (const uint64_t session : {1, 2}) devices.batch(session, session - 1, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1", "1: lend 2"));
  devices.in_flight(1, 10, 500);
  devices.in_flight(2, 10, 5);
  devices.request(3, 10);
  EXPECT_THAT(devices.decide(10), ElementsAre("1: withdraw 2")) << "nothing else would be free in time";
  devices.returned(2, 1, 12);
  EXPECT_THAT(devices.place(12, {3}), ElementsAre("3 on 1"));
  devices.works(3, 1, JobClass::kUserFacing, 12);
  EXPECT_THAT(devices.decide(12), ElementsAre("1: lend 3"));
  devices.ends(3, 1, 30, 18);
  EXPECT_THAT(devices.decide(31), IsEmpty()) << "for some seconds more it is the requests'";
}

TEST(Fifo, ClassesDoNotMatter) {
  Devices devices("fifo", 1);
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  devices.batch(2, 0, 10);
  devices.works(3, 0, JobClass::kUserFacing, 11);
  EXPECT_THAT(devices.decide(12), IsEmpty());
  devices.ends(1, 0, 50);
  EXPECT_THAT(devices.decide(50), ElementsAre("0: lend 2"));
}

TEST(Family, DevicesOfAnotherModelAreNoneOfItsBusiness) {
  std::vector<DeviceSpec> specs(2);
  specs[0].id = {0};
  specs[0].model = "small";
  specs[1].id = {1};
  specs[1].model = "large";
  DeadlineFamily family((*find_dispatch("priority:soft"))->deadline, specs);
  const auto small = family.dispatch({0}), large = family.dispatch({1});
  EXPECT_TRUE(small->spans_devices());
  for (const auto& [dispatch, session] : {std::pair(small.get(), 1), std::pair(large.get(), 2)}) {
    dispatch->joined(lessee(session), Devices::tenant(JobClass::kBatch), moment(0));
    dispatch->pending(lessee(session), moment(0));
    std::vector<LeaseOrder> orders;
    dispatch->decide(moment(0), orders);
    EXPECT_EQ(orders.size(), 1u);
  }
  family.waits("large", lessee(3), Devices::tenant(JobClass::kUserFacing), moment(10));
  EXPECT_TRUE(family.is_special(lessee(3)));
  EXPECT_TRUE(family.plan(moment(10)));
  std::vector<LeaseOrder> orders;
  small->decide(moment(10), orders);
  EXPECT_THAT(orders, IsEmpty());
  large->decide(moment(10), orders);
  EXPECT_EQ(orders.size(), 1u);
  family.waits_no_longer(lessee(3));
  EXPECT_TRUE(family.may_go(lessee(3))) << "of whom nothing was said";
}

TEST(RequestRates, LoadIsThatOfTheLastTenSeconds) {
  RequestRates rates;
  EXPECT_EQ(rates.load(moment(0)), 0);
  for (int i = 0; i < 500; ++i) {
    rates.arrived(moment(20 * i));
    rates.finished(i % 2 ? "long" : "short", ms(i % 2 ? 30 : 10), moment(20 * i));
  }
  EXPECT_NEAR(rates.load(moment(10'000)), 50 * 0.02, 0.06);
  EXPECT_EQ(rates.expected("long"), ms(30));
  EXPECT_EQ(rates.expected("short"), ms(10));
  EXPECT_NEAR(static_cast<double>(rates.expected("new").count()), 20e6, 5e6);
  EXPECT_EQ(rates.load(moment(25'000)), 0);
}

TEST(RequestRates, WhatIsExpectedGoesByMoreThanOneAndByNoneThatWasSlow) {
  RequestRates rates;
  rates.finished("first", ms(150), moment(0));
  EXPECT_EQ(rates.expected("first"), ms(0));
  rates.finished("first", ms(10), moment(100));
  EXPECT_EQ(rates.expected("first"), ms(10));
  EXPECT_EQ(rates.at_most("first"), ms(10));
  for (int i = 0; i < 8; ++i) rates.finished("first", ms(i == 5 ? 500 : 40), moment(200));
  EXPECT_EQ(rates.at_most("first"), ms(40));
  EXPECT_EQ(rates.expected("first"), ms(40)) << "what was before the last eight is forgotten";
  EXPECT_EQ(rates.expected("another"), ms(97.5)) << "the mean of all";
}

}  // namespace
}  // namespace heddle::policy
