// Suspended jobs' memory leaves a GPU, over the driver that tests bring: keepers make swap space and copy.

#include <fstream>

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/suspend_fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::RecordType;
using ::testing::HasSubstr;

class GpuSwapTest : public SuspendJobTest {
 protected:
  Result<Json> tell_to_swap() { return house_->ask({{"command", "suspend"}, {"job", job_}, {"swap", true}}); }
  uint64_t swap_used() { return (*house_->ask({{"command", "devices"}}))["swap"]["used"]; }
  TestClient with_byte() {
    TestClient client = running_in_job(Bytes{40 * kMiB});
    client.record(RecordType::kNeed, 1);
    client.fill(client.at(10), 7);
    EXPECT_TRUE(client.wait_completed(2)) << client.error_text();
    return client;
  }
  static void expect_byte(TestClient& client) {
    client.record(RecordType::kNeed, 1);
    client.record(RecordType::kTextureGone, client.at(10));
    EXPECT_TRUE(client.wait_fault(7)) << client.error_text();
  }
  FakeGpus gpus_;
};

TEST_F(GpuSwapTest, MemoryLeavesAndComesBackAndItsPlaceIsOthersMeanwhile) {
  start(kSmallGpu);
  TestClient client = with_byte();
  ASSERT_TRUE(tell_to_swap());
  wait_for_state("swapped");
  EXPECT_EQ(swap_used(), 40 * kMiB);
  TestClient other = running(Bytes{40 * kMiB});
  other.record(RecordType::kNeed, 1);
  ASSERT_TRUE(other.wait_completed(1)) << other.error_text();
  finish(other);
  resumed();
  expect_byte(client);
  finish(client);
  expect_used(Bytes{});
  EXPECT_EQ(swap_used(), 0u);
}

TEST_F(GpuSwapTest, WhereTheMachineHasNoMemoryForItItStays) {
  std::ofstream(gpus_.host_room()) << 0;
  start(kSmallGpu);
  TestClient client = with_byte();
  ASSERT_TRUE(tell_to_swap());
  Json job;
  house_->wait_for("ps", [&](const Json&) {
    job = *tell("job");
    return job.contains("not_swapped");
  });
  EXPECT_THAT(job["not_swapped"].get<std::string>(), HasSubstr("the GPU's keeper has no memory"));
  EXPECT_EQ(session_of(client)["tasks"][0]["state"], "suspended");
  EXPECT_EQ(swap_used(), 0u);
  expect_used(Bytes{40 * kMiB});
  resumed();
  expect_byte(client);
}

}  // namespace
}  // namespace heddle::daemon::testing
