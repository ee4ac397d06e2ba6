#include "policy/ledger.h"

#include <gtest/gtest.h>

#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

constexpr SessionId kSession{1};
constexpr DeviceId kDevice{0};

Request task(uint64_t id, Bytes memory, uint32_t virtual_device = 0) {
  return {{id}, kSession, {1}, virtual_device, 0, memory, grid(56), {}, {}};
}

TEST(Ledger, ContextIsChargedOnceForEachWorker) {
  Ledger ledger(p100s(1, gib(16), gib(1)));
  ledger.begin(task(1, gib(2)), kDevice);
  ledger.begin(task(2, gib(3)), kDevice);
  EXPECT_EQ(ledger.pool().free(kDevice), gib(10));
  ledger.begin(task(3, gib(1), 1), kDevice);  // another virtual device: another worker
  EXPECT_EQ(ledger.pool().free(kDevice), gib(8));
  ledger.end(kSession, {1});
  EXPECT_EQ(ledger.pool().free(kDevice), gib(10));
  ledger.end(kSession, {2});
  EXPECT_EQ(ledger.pool().free(kDevice), gib(14));
}

TEST(Ledger, AssignedWorkerStaysUntilTheSessionCloses) {
  Ledger ledger(p100s(1, gib(16), gib(1)));
  ledger.assign(kSession, 0, kDevice);
  ledger.begin(task(1, gib(2)), kDevice);
  ledger.end(kSession, {1});
  EXPECT_EQ(ledger.pool().free(kDevice), gib(15));
  ledger.close(kSession);
  EXPECT_EQ(ledger.pool().free(kDevice), gib(16));
}

TEST(Ledger, ClosingReturnsEverything) {
  Ledger ledger(p100s(2, gib(16), gib(1)));
  ledger.begin(task(1, gib(2)), {0});
  ledger.begin(task(2, gib(2), 1), {1});
  ledger.extend(kSession, {2}, gib(5));
  ledger.close(kSession);
  for (const DeviceId device : {DeviceId{0}, DeviceId{1}}) {
    EXPECT_EQ(ledger.pool().free(device), gib(16));
    EXPECT_EQ(ledger.pool().load(device).warps, 0u);
    EXPECT_EQ(ledger.pool().load(device).workers, 0u);
    EXPECT_EQ(ledger.pool().load(device).tasks, 0u);
  }
}

TEST(Ledger, FreeingMoreThanHeldFreesWhatIsHeld) {
  Ledger ledger(p100s(1));
  ledger.begin(task(1, gib(2)), kDevice);
  EXPECT_EQ(ledger.shrink(kSession, {1}, gib(5)), gib(2));
  EXPECT_EQ(ledger.pool().free(kDevice), gib(16));
}

TEST(LedgerDeathTest, PromisingMoreThanThereIsEndsTheProcess) {
  Ledger ledger(p100s(1, gib(16), gib(1)));
  EXPECT_DEATH(ledger.begin(task(1, gib(16)), kDevice), "never promised twice");
}

TEST(PoolFits, HugeRequestDoesNotWrapAround) {
  const Ledger ledger(p100s(1, gib(16), gib(1)));
  EXPECT_FALSE(ledger.pool().fits(task(1, Bytes{UINT64_MAX}), kDevice));
  EXPECT_FALSE(ledger.pool().could_hold(Bytes{UINT64_MAX}, kDevice));
  EXPECT_FALSE(ledger.pool().could_hold(gib(16), kDevice));
  EXPECT_TRUE(ledger.pool().could_hold(gib(15), kDevice));
}

TEST(PoolFits, DeviceWithAllItsWorkersTakenServesOnlyThose) {
  DeviceSpec spec = p100(0);
  spec.max_clients = 1;
  Ledger ledger({spec});
  ledger.begin(task(1, gib(1)), kDevice);
  Request other = task(2, gib(1));
  other.session = {2};
  EXPECT_FALSE(ledger.pool().fits(other, kDevice));
  Request again = task(3, gib(1));
  const auto workers = ledger.workers(kSession, 0);
  again.workers = workers;
  EXPECT_TRUE(ledger.pool().fits(again, kDevice));
}

}  // namespace
}  // namespace heddle::policy
