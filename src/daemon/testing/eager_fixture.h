#pragma once

#include "daemon/testing/suspend_fixture.h"

namespace heddle::daemon::testing {

inline constexpr const char* kEager = "eager_launch = true\n";
inline constexpr Bytes kPiece{20 * kMiB};

// A program of two segments, of which only the first fits on the device of 64 MiB beside another program.
class EagerFixture : public SuspendJobTest {
 protected:
  Json task_of(const TestClient& client) {
    const Json session = session_of(client);
    return session.is_object() && !session["tasks"].empty() ? session["tasks"][0] : Json::object();
  }
  Bytes on_host(const TestClient& client) { return Bytes{task_of(client).value("on_host", uint64_t{0})}; }
  Bytes swap_used() { return Bytes{(*house_->ask({{"command", "devices"}}))["swap"]["used"].get<uint64_t>()}; }

  TestClient begun_in_pieces(uint64_t pieces = 2, Bytes bytes = kPiece) {
    TestClient client = opened();
    for (uint64_t piece = 0; piece < pieces; ++piece)
      EXPECT_TRUE(client.declare(piece + 1, start_of(client, piece, bytes), bytes));
    EXPECT_TRUE(client.begin(1));
    job_ = session_of(client)["job"];
    return client;
  }
  static uint64_t start_of(const TestClient& client, uint64_t piece, Bytes bytes = kPiece) {
    return client.at(0) + piece * bytes.value;
  }
  // Beside a program that has 40 of the device's 64 MiB. It has 1 and up in its pieces.
  TestClient eager(uint64_t pieces = 2, Bytes bytes = kPiece) {
    TestClient client = begun_in_pieces(pieces, bytes);
    EXPECT_TRUE(client.wait_binding(protocol::Binding::kBound)) << client.error_text();
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      client.record(protocol::RecordType::kNeed, piece + 1);
      client.fill(start_of(client, piece, bytes), static_cast<uint32_t>(piece + 1));
    }
    EXPECT_TRUE(client.wait_completed(2 * pieces)) << client.error_text();
    return client;
  }
  static void expect_bytes(TestClient& client, uint64_t pieces = 2, Bytes bytes = kPiece) {
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      client.record(protocol::RecordType::kNeed, piece + 1);
      client.record(protocol::RecordType::kTextureGone, start_of(client, piece, bytes));
      EXPECT_TRUE(client.wait_fault(static_cast<uint32_t>(piece + 1))) << client.error_text();
    }
    EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
  }
  // Until all of its memory is on the device.
  void promoted(const TestClient& client) {
    house_->wait_for("ps", [&](const Json&) {
      const Json task = task_of(client);
      return task.value("state", "") == "running" && task.value("promotions", 0) > 0 && !task.contains("on_host");
    });
  }
  void finish_pieces(TestClient& client, uint64_t pieces = 2) {
    for (uint64_t piece = 0; piece < pieces; ++piece) client.record(protocol::RecordType::kFree, piece + 1);
    client.record(protocol::RecordType::kTaskEnd, 1);
    EXPECT_TRUE(client.wait_binding(protocol::Binding::kUnbound)) << client.error_text();
  }
  // The other one's memory becomes this one's.
  void expect_promoted_behind(TestClient& other, TestClient& client) {
    finish(other);
    promoted(client);
    expect_used(Bytes{40 * kMiB});
    EXPECT_EQ(swap_used(), Bytes{});
    expect_bytes(client);
    finish_pieces(client);
    expect_nothing_left();
  }
  void expect_nothing_left() {
    expect_used(Bytes{});
    EXPECT_EQ(swap_used(), Bytes{});
  }
};

}  // namespace heddle::daemon::testing
