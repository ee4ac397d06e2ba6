// How many workers stand ready on a GPU. heddled, its vault and its keeper are real, over the driver for tests; workers
// are fakes.

#include <fstream>

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;

constexpr const char* kGpu = R"(
[[gpu]]
memory = "256M"
context_memory = "0"
)";

class WarmPoolTest : public HouseholdTest {
 protected:
  uint64_t warm(size_t device = 0) {
    return (*house_->ask({{"command", "devices"}}))["devices"][device]["warm_workers"];
  }
  void wait_until_warm(uint64_t warm, size_t device = 0) {
    house_->wait_for("devices", [&](const Json& answer) { return answer["devices"][device]["warm_workers"] == warm; });
  }

  FakeGpus gpus_;
};

TEST_F(WarmPoolTest, AWorkerIsOnItsWayFromHelloOn) {
  start(kGpu, "warm_workers = 0\n");
  EXPECT_EQ(warm(), 0u);
  TestClient client = opened();
  wait_until_warm(1);
  ASSERT_TRUE(client.declare(1, client.at(0), Bytes{2 * kMiB}));
  ASSERT_TRUE(client.begin(1));
  EXPECT_TRUE(client.wait_binding(Binding::kBound));
}

TEST_F(WarmPoolTest, ThereIsOneForEachThatHasSaidHelloAndNoneOnceTheyAreGone) {
  start(kGpu);
  {
    const TestClient first = opened(), second = opened(), third = opened();
    wait_until_warm(3);
  }
  const TestClient last = opened();  // the same process: it has become another program, and the sessions before end
  wait_until_warm(1);
}

TEST_F(WarmPoolTest, OnTwoGpusTheyAreSpread) {
  gpus_.machine("2");
  start(kGpu, "warm_workers = 0\n");
  const TestClient first = opened(), second = opened();
  wait_until_warm(1, 0);
  wait_until_warm(1, 1);
}

TEST_F(WarmPoolTest, ItFollowsArrivalsAndFallsBack) {
  start(kGpu);
  const TestClient first = running(Bytes{2 * kMiB}), second = running(Bytes{2 * kMiB}),
                   third = running(Bytes{2 * kMiB});
  wait_until_warm(3);
  wait_until_warm(1);
}

TEST_F(WarmPoolTest, OnSoftwareDevicesItIsAsConfigured) {
  start(kOneDevice, "warm_workers = 0\n");
  const TestClient client = opened();
  EXPECT_EQ(running(Bytes{2 * kMiB}).header().error.load(), 0u);
  EXPECT_TRUE(house_->processes("heddle-worker").size() <= 1);
  EXPECT_EQ(warm(), 0u);
}

// The GPU has no memory but what the warm worker's context takes.
TEST_F(WarmPoolTest, WorkersThatServeNobodyMakeRoomForAProgram) {
  start(kGpu);
  wait_until_warm(1);
  TestClient other = running(Bytes{2 * kMiB});
  house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["warm_workers"] != 0; });
  std::ofstream(gpus_.room()) << 1;
  std::ofstream(house_->socket() + ".worker.room") << gpus_.room() << std::endl;
  ASSERT_TRUE(other.declare(2, other.at(8), Bytes{8 * kMiB}));
  other.record(protocol::RecordType::kNeed, 2);
  EXPECT_TRUE(other.wait_completed(1)) << other.error_text();
  EXPECT_EQ(other.header().error.load(), 0u) << other.error_text();
}

TEST_F(WarmPoolTest, WithNobodyToMakeRoomTheProgramIsTold) {
  start(kGpu, "warm_workers = 0\n");
  TestClient client = running(Bytes{2 * kMiB});
  std::ofstream(gpus_.room()) << 1;
  ASSERT_TRUE(client.declare(2, client.at(8), Bytes{8 * kMiB}));
  ASSERT_TRUE(client.wait_binding(Binding::kFailed));
  EXPECT_EQ(client.header().error.load(), 2u);
}

}  // namespace
}  // namespace heddle::daemon::testing
