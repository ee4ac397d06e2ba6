#include "policy/placement/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "policy/scheduler.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Sessions from 100 on are special, and may go when they are named; the others go where it is open.
class Gate : public PlacementGate {
 public:
  bool is_special(Lessee lessee) const override { return lessee.session.value >= 100; }
  std::vector<Lessee> next() const override { return named; }
  bool may_go(Lessee lessee) const override {
    return !is_special(lessee) || std::find(named.begin(), named.end(), lessee) != named.end();
  }
  bool open(Lessee /*lessee*/, DeviceId device) const override { return !closed.contains(device); }
  void placed(Lessee lessee, DeviceId device) override {
    std::erase(named, lessee);
    closed.insert(device);
  }

  uint64_t version() const override { return said; }

  uint64_t said = 0;
  std::vector<Lessee> named;
  std::set<DeviceId> closed;
};

struct Gated {
  explicit Gated(uint64_t devices) : scheduler(policy_named("mgb-warps"), p100s(devices), {.gate = &gate}) {}
  void arrive(uint64_t id, Bytes memory, int64_t when) {
    scheduler.session_opened({id}, {id}, "p100", {}, at(when));
    scheduler.task_arrived({{id}, {id}, {id}, 0, "", memory, grid(56)}, at(when));
  }
  // "3 on 0"
  std::vector<std::string> granted(int64_t when) {
    std::vector<std::string> all;
    for (const Decision& decision : scheduler.decisions(at(when)))
      all.push_back(std::to_string(decision.task.value) + " on " + std::to_string(decision.device.value));
    return all;
  }

  Gate gate;
  Scheduler scheduler;
};

TEST(PlacementGate, ADeviceThatIsClosedIsNotUsed) {
  Gated pool(2);
  pool.gate.closed = {{0}};
  pool.arrive(1, gib(1), 0);
  pool.arrive(2, gib(1), 0);
  EXPECT_THAT(pool.granted(0), ElementsAre("1 on 1")) << "which closed that one, too";
  pool.gate.closed = {{1}};
  EXPECT_THAT(pool.granted(1), IsEmpty()) << "nobody said that anything had changed";
  ++pool.gate.said;
  EXPECT_THAT(pool.granted(1), ElementsAre("2 on 0"));
}

TEST(PlacementGate, SpecialRequestsGoInTheOrderInWhichTheyAreNamed) {
  Gated pool(1);
  for (const uint64_t id : {100, 101, 102}) pool.arrive(id, gib(1), 0);
  EXPECT_THAT(pool.granted(0), IsEmpty());
  EXPECT_EQ(pool.scheduler.waiting()[0].cause, WaitCause::kTurn);
  pool.gate.named = {{{102}, 0}};
  ++pool.gate.said;
  EXPECT_THAT(pool.granted(1), ElementsAre("102 on 0"));
  pool.gate.closed.clear();
  pool.gate.named = {{{100}, 0}, {{7}, 0}};  // one that is not there, too
  ++pool.gate.said;
  EXPECT_THAT(pool.granted(2), ElementsAre("100 on 0"));
}

// Else batch tasks that have waited for longer would have each device that falls idle.
TEST(PlacementGate, ThoseThatAreNamedGoBeforeOlderOnes) {
  Gated pool(1);
  pool.gate.closed = {{0}};
  pool.arrive(1, gib(1), 0);
  pool.arrive(100, gib(1), 1);
  EXPECT_THAT(pool.granted(1), IsEmpty());
  pool.gate.closed.clear();
  pool.gate.named = {{{100}, 0}};
  ++pool.gate.said;
  EXPECT_THAT(pool.granted(2), ElementsAre("100 on 0"));
}

// Else a device would be kept for who may not have it.
TEST(PlacementGate, NothingIsReservedForWhoIsKeptBack) {
  Gated pool(1);
  pool.arrive(100, gib(1), 0);
  EXPECT_THAT(pool.granted(0), IsEmpty());
  pool.arrive(2, gib(1), 10'000);
  EXPECT_THAT(pool.granted(10'000), ElementsAre("2 on 0"));
}

// Others may wait for what it holds.
TEST(PlacementGate, WhoHoldsSomethingIsNotKeptBack) {
  Gated pool(2);
  pool.arrive(1, gib(1), 0);
  EXPECT_THAT(pool.granted(0), ElementsAre("1 on 0"));
  pool.gate.closed = {{0}, {1}};
  pool.scheduler.task_arrived({{9}, {1}, {1}, 1, "", gib(1), grid(56)}, at(1));
  EXPECT_THAT(pool.granted(1), ElementsAre("9 on 1"));
}

}  // namespace
}  // namespace heddle::policy
