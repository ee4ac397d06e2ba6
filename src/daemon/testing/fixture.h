#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "daemon/testing/fake_work.h"
#include "daemon/testing/household.h"

namespace heddle::daemon::testing {

inline constexpr const char* kDaemonTable = R"(
[daemon]
log_level = "off"
ring_bulk = "128K"
ring_records = "128K"
)";
inline constexpr const char* kTwoDevices = R"(
[[device]]
preset = "P100"
count = 2
memory = "64M"
slowdown = 0
)";
inline constexpr const char* kOneDevice = R"(
[[device]]
preset = "P100"
memory = "64M"
slowdown = 0
)";

// heddled as programs see it: real processes, workers without devices.
class HouseholdTest : public ::testing::Test {
 protected:
  using Json = Household::Json;

  // Before what a test has set up for it goes.
  void TearDown() override { house_.reset(); }
  // `more`: further lines of [daemon], and tables. Without a table [swap] nobody gives way: these programs do nothing
  // with their devices for as long as the machine is slow.
  void start(const std::string& devices = kTwoDevices, const std::string& more = "") {
    const bool swaps = more.find("[swap]") != std::string::npos;
    auto started = Household::start(kDaemonTable + more + (swaps ? "" : "[swap]\nidle = \"0s\"\n") + devices);
    ASSERT_TRUE(started) << started.error().text;
    house_ = std::move(*started);
  }
  TestClient opened(uint64_t job = 0, uint64_t secret = 0) {
    auto client = house_->client(job, secret);
    EXPECT_TRUE(client) << client.error().text;
    EXPECT_TRUE(client->open_device());
    return std::move(*client);
  }
  // A client whose first task, of one segment, was announced.
  TestClient begun(Bytes bytes) {
    TestClient client = opened();
    EXPECT_TRUE(client.declare(1, client.at(0), bytes));
    EXPECT_TRUE(client.begin(1));
    return client;
  }
  TestClient running(Bytes bytes) {
    TestClient client = begun(bytes);
    EXPECT_TRUE(client.wait_binding(protocol::Binding::kBound)) << client.error_text();
    return client;
  }
  // The process that serves the client's task, which is bound.
  pid_t worker_of(const TestClient& client) {
    pid_t worker = 0;
    house_->wait_for("ps", [&](const Json& ps) {
      for (const Json& session : ps["sessions"]) {
        if (session["session"] != client.welcome().session || session["tasks"].empty()) continue;
        worker = session["tasks"][0].value("worker_pid", 0);  // between two workers it has none
      }
      return worker > 0;
    });
    return worker;
  }
  // The client's worker has begun something that goes on as fake_work.h says.
  static void compute(TestClient& client, uint64_t how = kForGood) {
    client.record(protocol::RecordType::kHostCall, how);
    while (client.header().issued.load() != client.writer().last_sequence()) ::usleep(1000);
  }
  // A keeper's command line does not name the household; its parent does.
  std::vector<pid_t> children_named(const std::string& name) {
    std::vector<pid_t> found;
    const pid_t parent = house_->heddled();
    std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
    for (pid_t pid; list >> pid;) {
      std::string words;
      std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/cmdline"), words, '\0');
      if (words.ends_with(name)) found.push_back(pid);
    }
    return found;
  }
  // The program frees segment 1, its only one, and so ends its task.
  static void finish(TestClient& client, uint64_t serial = 1) {
    client.record(protocol::RecordType::kFree, 1);
    client.record(protocol::RecordType::kTaskEnd, serial);
    EXPECT_TRUE(client.wait_binding(protocol::Binding::kUnbound));
  }

  std::unique_ptr<Household> house_;
};

}  // namespace heddle::daemon::testing
