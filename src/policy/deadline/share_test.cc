#include "policy/deadline/share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/deadline/test_devices.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct ShareTest : testing::Test {
  void request_works(uint64_t session, uint64_t device, double when) {
    devices.works(session, device, JobClass::kUserFacing, when);
  }
  Devices devices{"priority:share", 1};
};

TEST_F(ShareTest, RequestsHaveTheDeviceBesideBatchAndEachOther) {
  devices.batch(1, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 1"));
  request_works(2, 0, 5);
  request_works(3, 0, 5);
  EXPECT_THAT(devices.decide(5), ElementsAre("0: lend 2", "0: lend 3"));
  EXPECT_THAT(devices.decide(5000), IsEmpty()) << "nothing is taken back, however long it takes";
  EXPECT_EQ(devices.next(0, 5000), std::nullopt);
}

TEST_F(ShareTest, ARequestOnADeviceThatNobodyHas) {
  request_works(2, 0, 5);
  EXPECT_THAT(devices.decide(5), ElementsAre("0: lend 2"));
  devices.batch(1, 0, 6);
  EXPECT_THAT(devices.decide(6), ElementsAre("0: lend 1"));
}

TEST_F(ShareTest, BatchTakesTurnsWithBatch) {
  devices.batch(1, 0, 0);
  devices.batch(2, 0, 0);
  request_works(3, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 3", "0: lend 1"));
  EXPECT_THAT(devices.decide(999), IsEmpty());
  EXPECT_EQ(devices.next(0, 999), moment(1000));
  EXPECT_THAT(devices.decide(1000), ElementsAre("0: withdraw 1"));
  EXPECT_THAT(devices.decide(1001), IsEmpty()) << "once";
  devices.returned(1, 0, 1002);
  EXPECT_THAT(devices.decide(1002), ElementsAre("0: lend 2"));
}

TEST_F(ShareTest, ARequestWhoseLeaseIsBackIsLentTheDeviceAgain) {
  request_works(2, 0, 0);
  EXPECT_THAT(devices.decide(0), ElementsAre("0: lend 2"));
  devices.returned(2, 0, 10);  // its worker died
  EXPECT_THAT(devices.decide(10), ElementsAre("0: lend 2"));
}

TEST_F(ShareTest, RequestsArePlacedAnywhereByDeadlineAndBatchWhereNoOtherWorks) {
  Devices two("priority:share", 2);
  two.batch(1, 0, 0);
  two.request(3, 20);
  two.request(2, 10);
  two.batch_waits(4, 0);
  two.batch_waits(5, 0);
  EXPECT_THAT(two.place(20, {4, 5, 2, 3}), ElementsAre("4 on 1", "2 on 0", "3 on 0"));
}

// Also where it came late: it may still be the only one that waits.
TEST_F(ShareTest, ALateRequestGoesBehindThoseInTime) {
  devices.request(2, 0);
  devices.request(3, 250);
  devices.plan(300);
  EXPECT_THAT(devices.place(300, {2, 3}), ElementsAre("2 on 0", "3 on 0"));
  EXPECT_FALSE(devices.plan(301)) << "nothing has changed";
}

TEST_F(ShareTest, NothingIsRevoked) {
  EXPECT_FALSE((*find_dispatch("priority:share"))->deadline({{0}})->revocation({0}));
  EXPECT_TRUE((*find_dispatch("priority:share"))->bounds_batch);
  EXPECT_FALSE((*find_dispatch("priority:hard"))->bounds_batch);
}

}  // namespace
}  // namespace heddle::policy
