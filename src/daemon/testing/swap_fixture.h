#pragma once

#include "daemon/testing/suspend_fixture.h"

namespace heddle::daemon::testing {

inline constexpr Bytes kMuch{40 * kMiB};  // two of these do not fit kOneDevice

// A job whose memory leaves its device.
class SwapTest : public SuspendJobTest {
 protected:
  Result<Json> tell_to_swap() { return house_->ask({{"command", "suspend"}, {"job", job_}, {"swap", true}}); }
  void swapped() {
    const auto told = tell_to_swap();
    ASSERT_TRUE(told) << told.error().text;
    wait_for_state("swapped");
  }
  Bytes swap_used() { return Bytes{(*house_->ask({{"command", "devices"}}))["swap"]["used"].get<uint64_t>()}; }
  // The job's program, whose memory, segment 1, has 7 at its first byte and 9 at its last.
  TestClient with_bytes(Bytes bytes = kMuch) {
    TestClient client = running_in_job(bytes);
    client.record(protocol::RecordType::kNeed, 1);
    last_byte_ = client.at(0) + bytes.value - 1;
    client.fill(client.at(0), 7);
    client.fill(last_byte_, 9);
    EXPECT_TRUE(client.wait_completed(3));
    return client;
  }
  void expect_bytes(TestClient& client) {
    client.record(protocol::RecordType::kNeed, 1);
    for (const auto& [address, value] : {std::pair(client.at(0), 7u), std::pair(last_byte_, 9u)}) {
      client.record(protocol::RecordType::kTextureGone, address);
      EXPECT_TRUE(client.wait_fault(value)) << client.header().fault.load() << client.error_text();
    }
    EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
  }
  void expect_nothing_left() {
    expect_used(Bytes{});
    EXPECT_EQ(swap_used(), Bytes{});
  }
  void end(TestClient& client) {
    client.socket().close();
    EXPECT_TRUE(house_->client());  // the same process as another program: ends the session before it
  }
  uint64_t last_byte_ = 0;
};

}  // namespace heddle::daemon::testing
