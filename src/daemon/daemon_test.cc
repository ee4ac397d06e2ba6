// heddled as programs see it: real processes, workers without devices.

#include <gtest/gtest.h>

#include "daemon/testing/household.h"

namespace heddle::daemon::testing {
namespace {

using protocol::Binding;
using protocol::RecordType;
using Json = Household::Json;

constexpr const char* kTwoDevices = R"(
[daemon]
log_level = "warn"
ring_bulk = "128K"
ring_records = "128K"
[[device]]
preset = "P100"
count = 2
memory = "64M"
slowdown = 0
)";

class HeddledTest : public ::testing::Test {
 protected:
  void start(const std::string& config = kTwoDevices) {
    auto started = Household::start(config);
    ASSERT_TRUE(started) << started.error().text;
    house_ = std::move(*started);
  }
  // A client whose task of `bytes` runs.
  TestClient running(Bytes bytes) {
    TestClient client = opened();
    EXPECT_TRUE(client.declare(1, client.at(0), bytes));
    EXPECT_TRUE(client.begin(1));
    EXPECT_TRUE(client.wait_binding(Binding::kBound)) << client.error_text();
    return client;
  }
  TestClient opened() {
    auto client = house_->client();
    EXPECT_TRUE(client) << client.error().text;
    EXPECT_TRUE(client->open_device());
    return std::move(*client);
  }
  std::unique_ptr<Household> house_;
};

TEST_F(HeddledTest, ATaskRunsFromItsBeginToItsEnd) {
  start();
  TestClient client = running(Bytes{4 * kMiB});
  EXPECT_EQ(client.header().task_serial.load(), 1u);
  EXPECT_EQ(client.header().generation.load(), 1u);
  client.record(RecordType::kNeed, 1);
  client.record(RecordType::kFree, 1);
  client.record(RecordType::kTaskEnd, 1);
  ASSERT_TRUE(client.wait_binding(Binding::kUnbound));
  ASSERT_TRUE(client.declare(2, client.at(0), Bytes{2 * kMiB}));
  ASSERT_TRUE(client.begin(2));
  ASSERT_TRUE(client.wait_binding(Binding::kBound));
  EXPECT_EQ(client.header().task_serial.load(), 2u);
  EXPECT_EQ(client.header().generation.load(), 2u);
}

}  // namespace
}  // namespace heddle::daemon::testing
