// Each policy by itself, order by order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/dispatch/test_device.h"

namespace heddle::policy {
namespace {

class Driven {
 public:
  explicit Driven(const char* policy) : dispatch_(std::move(make_dispatch(policy)).value()) {}

  void join(uint64_t session, double weight = 1, double when = 0, uint64_t job = 0) {
    dispatch_->joined(lessee(session), {.job = {job > 0 ? job : session}, .weight = weight}, moment(when));
  }
  void pending(uint64_t session, double when) { dispatch_->pending(lessee(session), moment(when)); }
  void drained(uint64_t session, double when) { dispatch_->drained(lessee(session), moment(when)); }
  void returned(uint64_t session, double when) { dispatch_->returned(lessee(session), moment(when)); }
  void served(uint64_t session, double busy, double when) {
    dispatch_->served(lessee(session), {.busy = ms(busy)}, moment(when));
  }
  void left(uint64_t session, double when) { dispatch_->left(lessee(session), moment(when)); }

  // "lend 1 until 50", "lend 1", "withdraw 1", or nothing.
  std::string decide(double when) {
    std::vector<LeaseOrder> orders;
    dispatch_->decide(moment(when), orders);
    std::string text;
    for (const LeaseOrder& order : orders) {
      if (!text.empty()) text += ", ";
      if (const auto* withdraw = std::get_if<Withdraw>(&order))
        text += "withdraw " + std::to_string(withdraw->from.session.value);
      if (const auto* lend = std::get_if<Lend>(&order)) {
        text += "lend " + std::to_string(lend->to.session.value);
        if (lend->until != TimePoint::max()) text += " until " + in_ms(lend->until);
        if (lend->whole_bursts) text += " in whole bursts";
      }
    }
    return text;
  }
  std::string next(double when) const {
    const auto next = dispatch_->next(moment(when));
    return next ? in_ms(*next) : "never";
  }

 private:
  static std::string in_ms(TimePoint time) {
    std::string text = std::to_string(static_cast<double>(time.time_since_epoch().count()) / 1e6);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }
  std::unique_ptr<Dispatch> dispatch_;
};

// What holds for each policy that lends the device to one at a time.
class OneHolder : public testing::TestWithParam<const char*> {};

TEST_P(OneHolder, AloneKeepsTheLease) {
  Driven device(GetParam());
  device.join(1);
  EXPECT_EQ(device.decide(0), "");
  device.pending(1, 1);
  EXPECT_EQ(device.decide(1), "lend 1");
  EXPECT_EQ(device.next(1), "never");
  device.drained(1, 5);
  EXPECT_EQ(device.decide(5), "");
  device.pending(1, 5000);
  EXPECT_EQ(device.decide(5000), "");
  EXPECT_EQ(device.next(5000), "never");
}

TEST_P(OneHolder, NobodyIsLentTheDeviceBeforeTheLastHasDrained) {
  Driven device(GetParam());
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  device.served(1, 1000, 1000);
  device.pending(2, 1000);
  EXPECT_EQ(device.decide(1000), "withdraw 1");
  EXPECT_EQ(device.decide(1500), "");
  EXPECT_EQ(device.next(1500), "never");
  device.returned(1, 1600);
  EXPECT_THAT(device.decide(1600), testing::StartsWith("lend 2"));
}

TEST_P(OneHolder, IdleHolderGivesWayOnlyAfterAShortPause) {
  Driven device(GetParam());
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  device.served(1, 0.5, 0.5);
  device.drained(1, 0.5);
  device.pending(2, 1);
  EXPECT_EQ(device.decide(1), "");
  EXPECT_EQ(device.next(1), "2.5");
  device.pending(1, 2);  // it goes on
  EXPECT_EQ(device.decide(2.5), "");
  device.drained(1, 2.5);
  EXPECT_EQ(device.decide(4), "");
  EXPECT_EQ(device.decide(4.5), "withdraw 1");
}

TEST_P(OneHolder, WhoLeavesWithTheLeaseMakesWay) {
  Driven device(GetParam());
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  device.pending(2, 0);
  EXPECT_THAT(device.decide(0), testing::StartsWith("lend 1"));
  device.left(1, 2);
  EXPECT_EQ(device.decide(2), "lend 2");
  device.left(2, 3);
  EXPECT_EQ(device.decide(3), "");
  EXPECT_EQ(device.next(3), "never");
}

INSTANTIATE_TEST_SUITE_P(Dispatch, OneHolder, testing::Values("fs", "tfs", "las"));

TEST(Fs, SlicesByWeightGoRound) {
  Driven device("fs");
  device.join(1);
  device.join(2, 2);
  device.join(3);
  for (const uint64_t session : {1, 2, 3}) device.pending(session, 0);
  EXPECT_EQ(device.decide(0), "lend 1 until 25");
  EXPECT_EQ(device.next(0), "never");
  device.returned(1, 30);
  EXPECT_EQ(device.decide(30), "lend 2 until 80");
  device.returned(2, 80);
  EXPECT_EQ(device.decide(80), "lend 3 until 105");
  device.returned(3, 105);
  EXPECT_EQ(device.decide(105), "lend 1 until 130");
}

TEST(Fs, TimeAloneCountsAsPartOfTheSlice) {
  Driven device("fs");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  device.pending(2, 20);
  EXPECT_EQ(device.decide(20), "");
  EXPECT_EQ(device.next(20), "50");
  EXPECT_EQ(device.decide(50), "withdraw 1");
}

TEST(Fs, LesseesOfOneJobShareItsWeight) {
  Driven device("fs");
  device.join(1, 1, 0, 7);
  device.join(2, 1, 0, 7);
  device.join(3, 1, 0, 8);
  for (const uint64_t session : {1, 2, 3}) device.pending(session, 0);
  EXPECT_EQ(device.decide(0), "lend 1 until 25");
  device.returned(1, 25);
  EXPECT_EQ(device.decide(25), "lend 2 until 50");
  device.returned(2, 50);
  EXPECT_EQ(device.decide(50), "lend 3 until 100");
}

TEST(Tfs, OvershootIsPaidForInTheNextSlices) {
  Driven device("tfs");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  device.pending(2, 0);
  EXPECT_EQ(device.decide(0), "lend 1 until 5");
  device.served(1, 60, 60);
  device.returned(1, 60);
  EXPECT_EQ(device.decide(60), "lend 2 until 65");
  device.served(2, 40, 100);
  device.returned(2, 100);  // credit: 1: 50 - 60, 2: 50 - 40
  EXPECT_EQ(device.decide(100), "lend 2 until 110");
  device.served(2, 10, 110);
  device.returned(2, 110);
  EXPECT_EQ(device.decide(110), "lend 2 until 115");
}

// What a slice's holder uses goes off its credit at once; the slice itself stays as it was lent.
TEST(Tfs, SliceIsSettledWhenTheDeviceIsLent) {
  Driven device("tfs");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  device.pending(2, 0);
  EXPECT_EQ(device.decide(100), "lend 1 until 150");  // credit of both: 50
  for (const double when : {110, 120, 130, 140}) {
    device.served(1, 10, when);
    EXPECT_EQ(device.decide(when), "") << when;
    EXPECT_EQ(device.next(when), "never");
  }
  device.served(1, 10, 150);
  device.returned(1, 150);
  EXPECT_EQ(device.decide(150), "lend 2 until 200");
}

// Half of the time with the lease counts at once, the measured rest when it is known.
TEST(Tfs, WhatIsMeasuredLateIsPaidForAsWell) {
  Driven device("tfs");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  device.pending(2, 0);
  EXPECT_EQ(device.decide(100), "lend 1 until 150");  // credit of both: 50
  device.served(1, 0, 140);
  device.served(1, 40, 140);
  device.returned(1, 140);
  EXPECT_EQ(device.decide(140), "lend 2 until 190");
  device.served(2, 50, 190);
  device.returned(2, 190);
  EXPECT_EQ(device.decide(190), "lend 1 until 200");  // 10 is left of its credit
}

TEST(Tfs, TimeAloneIsNeitherPaidForNorSaved) {
  Driven device("tfs");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  device.served(1, 10'001, 10'001);
  device.pending(2, 10'001);
  EXPECT_EQ(device.decide(10'001), "withdraw 1");
  device.served(1, 1, 10'002);
  device.returned(1, 10'002);
  EXPECT_EQ(device.decide(10'002), "lend 2 until 10007");
  device.served(2, 5, 10'007);
  device.returned(2, 10'007);
  EXPECT_EQ(device.decide(10'007), "lend 1 until 10012");
}

TEST(Tfs, BeginningAnewDoesNotShedWhatIsOwed) {
  Driven device("tfs");
  for (const uint64_t session : {1, 2}) {
    device.join(session);
    device.pending(session, 0);
  }
  EXPECT_EQ(device.decide(0), "lend 1 until 5");
  device.served(1, 60, 60);
  device.left(1, 60);
  device.join(11, 1, 60, 1);
  device.pending(11, 60);
  EXPECT_EQ(device.decide(60), "lend 2 until 65");
  device.served(2, 40, 100);
  device.returned(2, 100);
  EXPECT_EQ(device.decide(100), "lend 2 until 110");
}

TEST(Las, QuantumEndsOnlyForOneWhoHasHadLess) {
  Driven device("las");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  device.pending(2, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  EXPECT_EQ(device.next(0), "10");
  device.served(1, 10, 10);
  EXPECT_EQ(device.decide(10), "withdraw 1");
  device.returned(1, 10);
  EXPECT_EQ(device.decide(10), "lend 2");
  device.served(2, 4, 14);
  device.drained(2, 14);
  EXPECT_EQ(device.decide(16), "withdraw 2");
  device.returned(2, 16);
  EXPECT_EQ(device.decide(16), "lend 1");
  device.pending(2, 20);
  device.served(1, 10, 26);
  EXPECT_EQ(device.decide(26), "withdraw 1");
  device.returned(1, 26);
  EXPECT_EQ(device.decide(26), "lend 2");
  device.served(2, 10, 36);
  EXPECT_EQ(device.decide(36), "");  // 14 against 20
  EXPECT_EQ(device.next(36), "46");
}

TEST(LasOfSeveral, LendsToThoseWhoHaveHadLeast) {
  Driven device("las:2");
  for (const uint64_t session : {1, 2, 3}) {
    device.join(session);
    device.pending(session, 0);
  }
  EXPECT_EQ(device.decide(0), "lend 1, lend 2");
  EXPECT_EQ(device.next(0), "10");
  device.served(1, 10, 10);
  device.served(2, 6, 10);
  EXPECT_EQ(device.decide(10), "withdraw 1");  // who has had 6 is still among the two that have had least
  EXPECT_EQ(device.decide(11), "");
  device.returned(1, 12);
  EXPECT_EQ(device.decide(12), "lend 3");
  device.drained(2, 13);
  EXPECT_EQ(device.next(13), "15");
  EXPECT_EQ(device.decide(15), "withdraw 2");
  device.returned(2, 15);
  EXPECT_EQ(device.decide(15), "lend 1");
}

TEST(LasOfSeveral, WithdrawsNoMoreThanOthersWaitFor) {
  Driven device("las:3");
  for (const uint64_t session : {1, 2, 3, 4}) device.join(session);
  for (const uint64_t session : {1, 2, 3}) device.pending(session, 0);
  EXPECT_EQ(device.decide(0), "lend 1, lend 2, lend 3");
  EXPECT_EQ(device.next(0), "never");
  for (const uint64_t session : {1, 2, 3}) device.served(session, 50, 50);
  device.pending(4, 50);
  EXPECT_EQ(device.decide(50), "withdraw 3");
  EXPECT_EQ(device.decide(60), "");
  device.returned(3, 60);
  EXPECT_EQ(device.decide(60), "lend 4");
}

TEST(LasOfSeveral, AFreePlaceIsTakenBeforeAnybodyIsWithdrawn) {
  Driven device("las:2");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  device.served(1, 1000, 1000);
  device.pending(2, 1000);
  EXPECT_EQ(device.decide(1000), "lend 2");
  EXPECT_EQ(device.next(1000), "never");
  device.left(1, 1001);
  EXPECT_EQ(device.decide(1001), "");
}

TEST(LasOfSeveral, LesseesOfOneJobTakeTurns) {
  Driven device("las:2");
  for (const uint64_t session : {1, 2, 3}) {
    device.join(session, 1, 0, 7);
    device.pending(session, 0);
  }
  EXPECT_EQ(device.decide(0), "lend 1, lend 2");
  device.served(1, 10, 10);
  EXPECT_EQ(device.decide(10), "withdraw 2");
  device.returned(2, 10);
  EXPECT_EQ(device.decide(10), "lend 3");
}

// Copies count, and so does half of the time for which it has the device and waits for its host in mid-burst.
TEST(Las, WhoHoldsTheDeviceWithoutUsingItPaysHalf) {
  Driven device("las");
  device.join(1);
  device.join(2);
  device.pending(1, 0);
  device.pending(2, 0);
  EXPECT_EQ(device.decide(0), "lend 1");
  device.served(1, 0, 10);
  EXPECT_EQ(device.decide(10), "withdraw 1");
}

}  // namespace
}  // namespace heddle::policy
