// Batch jobs on a part of a device's SMs: what their programs are told, and how their workers are started. GPUs are the
// driver's for tests, their MPS a control program and a server that the tests bring, workers are fakes.

#include "daemon/batch_sms.h"

#include <fstream>
#include <string>

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/fake_mps.h"
#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;

constexpr const char* kHalf = "[dispatch]\npolicy = \"priority:share\"\nbatch_sms = 50\n";

TEST(BatchSms, AreAtLeastOne) {
  const DeviceModel p100 = *device_preset("P100");
  EXPECT_EQ(batch_sms({.batch_sms = 80}, p100), 44u);
  EXPECT_EQ(batch_sms({.batch_sms = 100}, p100), 56u);
  EXPECT_EQ(batch_sms({.batch_sms = 1}, p100), 1u);
}

struct BatchSmsTest : HouseholdTest {
  TestClient service(Bytes bytes) {
    opener_ = std::move(*protocol::connect_to(house_->socket()));
    const auto job = Household::ask(opener_, {{"command", "job_open"}, {"class", "user-facing"}});
    EXPECT_TRUE(job) << job.error().text;
    TestClient client = opened((*job)["job"], (*job)["secret"]);
    EXPECT_TRUE(client.declare(1, client.at(0), bytes) && client.begin(1));
    EXPECT_TRUE(client.wait_binding(Binding::kBound)) << client.error_text();
    return client;
  }
  // Empty where the worker has none.
  std::string thread_percentage(const TestClient& client) {
    std::ifstream file("/proc/" + std::to_string(worker_of(client)) + "/environ");
    const std::string name = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=";
    for (std::string variable; std::getline(file, variable, '\0');) {
      if (variable.starts_with(name)) return variable.substr(name.size());
    }
    return "";
  }
  static void expect_served(TestClient& client) {
    client.fill(client.at(0), 1);
    EXPECT_TRUE(client.wait_completed(client.writer().last_sequence())) << client.error_text();
  }
  protocol::Socket opener_;
};

TEST_F(BatchSmsTest, UnderMpsThePercentageIsItsWorkers) {
  const FakeGpus gpus;
  const FakeMps mps;
  start("[[gpu]]\nmps = \"on\"\nmemory = \"64M\"\ncontext_memory = \"0\"\n", kHalf);
  TestClient batch = running(Bytes{4 * kMiB}), server = service(Bytes{4 * kMiB});
  EXPECT_EQ(batch.welcome().devices[0].sms, 2u);
  EXPECT_EQ(server.welcome().devices[0].sms, 4u);
  expect_served(batch);
  TestClient other = running(Bytes{4 * kMiB});  // where no other batch task is at work
  EXPECT_EQ(thread_percentage(batch), "50");
  EXPECT_EQ(thread_percentage(other), "50");
  EXPECT_EQ(thread_percentage(server), "");
  for (TestClient* each : {&server, &other}) expect_served(*each);
  house_.reset();
}

// It is lent the device at once, though batch has it and does not give it back.
TEST_F(BatchSmsTest, ARequestIsServedWhileBatchComputes) {
  start(kOneDevice, kHalf);
  TestClient batch = running(Bytes{4 * kMiB});
  compute(batch);
  TestClient server = service(Bytes{4 * kMiB});
  for (int request = 0; request < 3; ++request) expect_served(server);
  const Json devices = *house_->ask({{"command", "devices"}});
  EXPECT_EQ(devices["devices"][0]["batch_sms"], 28);
  EXPECT_EQ(devices["devices"][0]["leases"].size(), 2u) << devices;
}

TEST_F(BatchSmsTest, DevicesInTimeSlicesAreRefused) {
  const FakeGpus gpus;
  EXPECT_FALSE(Household::start(std::string(kDaemonTable) + kHalf + kSmallGpu));
  EXPECT_FALSE(Household::start(std::string(kDaemonTable) + kHalf + kOneDevice + "sharing = \"time-sliced\"\n"));
}

}  // namespace
}  // namespace heddle::daemon::testing
