#pragma once

// A GPU under MPS: the driver's for tests, a control program and a server that the tests bring, workers that are fakes.
// heddled, its vault and its keeper are real.

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/fake_mps.h"
#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {

class MpsGpuTest : public HouseholdTest {
 protected:
  pid_t control() const {
    pid_t pid = 0;
    std::ifstream(house_->directory() + "/mps-0/control.pid") >> pid;
    return pid;
  }
  static bool is_there(pid_t pid) {
    EXPECT_GT(pid, 1) << "no process was found to ask for";
    return pid > 1 && ::kill(pid, 0) == 0;
  }
  // The GPU's first server runs: what comes later is not the first.
  void start_gpu(const std::string& more = "", const std::string& mps = "on") {
    ASSERT_NO_FATAL_FAILURE(
        start("[[gpu]]\nmps = \"" + mps + "\"\nmemory = \"256M\"\ncontext_memory = \"0\"\n" + more));
    house_->wait_for("devices", [&](const Json&) { return !mps_.servers().empty(); });
    ASSERT_FALSE(HasFailure());
  }
  static bool is_mps_client(pid_t worker) {
    std::ifstream file("/proc/" + std::to_string(worker) + "/environ");
    const std::string variables{std::istreambuf_iterator<char>(file), {}};
    const size_t found = variables.find("CUDA_MPS_PIPE_DIRECTORY=");
    return found != std::string::npos && !variables.substr(found).starts_with("CUDA_MPS_PIPE_DIRECTORY=/nonexistent");
  }
  using HouseholdTest::worker_of;
  pid_t worker_of(size_t session) {
    const Json ps = *house_->ask({{"command", "ps"}});
    return ps["sessions"][session]["tasks"][0].value("worker_pid", 0);
  }
  void goes_on_under_mps(TestClient& client) {
    house_->wait_for("ps", [&](const Json&) {
      const pid_t worker = worker_of(client);
      return worker > 1 && is_mps_client(worker);
    });
    expect_served(client);
  }
  // Workers outside of MPS, which serve nobody yet or are tried.
  std::set<pid_t> outside_mps() const {
    std::set<pid_t> outside;
    for (const pid_t worker : house_->processes("heddle-worker")) {
      if (!is_mps_client(worker)) outside.insert(worker);
    }
    return outside;
  }
  // So many stand ready outside of MPS, and one under it.
  void wait_until_ready(size_t outside) {
    house_->wait_for("devices", [&](const Json& answer) {
      return outside_mps().size() == outside && answer["devices"][0]["warm_workers"] == outside + 1;
    });
  }
  static void fault(TestClient& client, uint64_t how = kForGood) {
    client.record(protocol::RecordType::kPrefetchModule, how);
  }
  static void expect_failed(TestClient& client, uint32_t code, const char* text) {
    ASSERT_TRUE(client.wait_binding(protocol::Binding::kFailed));
    EXPECT_EQ(client.header().error.load(), code);
    EXPECT_THAT(client.error_text(), ::testing::HasSubstr(text));
  }
  static void expect_served(TestClient& client) {
    client.fill(client.at(0), 1);
    EXPECT_TRUE(client.wait_completed(client.writer().last_sequence()));
    EXPECT_EQ(client.header().error.load(), 0u) << client.error_text();
  }
  void expect_gpu_serves() {
    TestClient next = running(Bytes{4 * kMiB});
    expect_served(next);
  }

  FakeGpus gpus_;
  FakeMps mps_;
};

}  // namespace heddle::daemon::testing
