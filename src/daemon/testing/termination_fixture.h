#pragma once

#include <set>
#include <string>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {

inline constexpr const char* kHard = "[dispatch]\npolicy = \"priority:hard\"\n";

class TerminationTest : public HouseholdTest {
 protected:
  explicit TerminationTest(const char* device = kOneDevice) : device_(device) {}
  // A service that has its device, and batch that computes there.
  void SetUp() override {
    start(device_, kHard);
    opener_ = std::move(*protocol::connect_to(house_->socket()));
    const auto job =
        Household::ask(opener_, {{"command", "job_open"}, {"class", "user-facing"}, {"slo_ns", 50'000'000u}});
    ASSERT_TRUE(job) << job.error().text;
    server_.emplace(opened((*job)["job"], (*job)["secret"]));
    ASSERT_TRUE(server_->declare(1, server_->at(0), Bytes{8 * kMiB}) && server_->begin(1));
    request();
    ASSERT_TRUE(answered());
    batch_.emplace(running(Bytes{8 * kMiB}));
  }
  void TearDown() override {
    server_.reset();
    batch_.reset();
    HouseholdTest::TearDown();
  }

  void request() {
    server_->fill(server_->at(0), 1);
    ++requests_;
  }
  bool answered() { return server_->wait_completed(requests_); }
  static Json session_of(const Json& ps, const TestClient& client) {
    for (const Json& session : ps["sessions"])
      if (session["session"] == client.welcome().session) return session;
    return {};
  }
  Json task_of(const TestClient& client) {
    const auto ps = house_->ask({{"command", "ps"}});
    const Json session = ps ? session_of(*ps, client) : Json();
    return session.is_object() && !session["tasks"].empty() ? session["tasks"][0] : Json::object();
  }
  Json job_of(const TestClient& client) {
    const auto ps = house_->ask({{"command", "ps"}});
    const Json session = ps ? session_of(*ps, client) : Json();
    if (!session.is_object()) return {};
    for (const Json& job : (*ps)["jobs"])
      if (job["job"] == session["job"]) return job;
    return {};
  }
  void wait_for_terminations(uint64_t count) {
    house_->wait_for("ps", [&](const Json&) { return task_of(*batch_).value("terminations", uint64_t{0}) == count; });
  }
  // A request may come before batch computes in its next worker, and find the device free.
  void terminate(uint64_t count) {
    const auto terminated = [&] { return task_of(*batch_).value("terminations", uint64_t{0}) >= count; };
    for (int tries = 0; tries < 50 && !terminated(); ++tries) {
      wait_for_lease();
      request();
      ASSERT_TRUE(answered());
    }
    ASSERT_TRUE(terminated()) << task_of(*batch_);
  }
  // Whichever worker serves it now may compute.
  void wait_for_lease() { wait_for_lease({"held"}); }
  // The same, where heddled may be another one by now: it has taken back what it found, and work that was under way
  // goes on without a lease.
  void wait_for_work() { wait_for_lease({"held", "draining"}); }
  void wait_for_lease(const std::set<std::string>& states) {
    house_->wait_for("ps", [&](const Json&) {
      const Json task = task_of(*batch_);
      return task.contains("lease") && states.contains(task["lease"]["state"].get<std::string>());
    });
  }
  void expect_batch_ends_well() {
    batch_->host_calls_return();
    EXPECT_TRUE(batch_->wait_completed(batch_->writer().last_sequence())) << batch_->error_text();
    EXPECT_EQ(batch_->header().error.load(), 0u) << batch_->error_text();
    finish(*batch_);
    finish(*server_);
    house_->wait_for("devices", [](const Json& answer) { return answer["devices"][0]["used"] == 0; });
  }
  void restart() {
    const pid_t old = house_->heddled();
    house_->kill(old);
    house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  }

  const char* device_;
  protocol::Socket opener_;
  std::optional<TestClient> server_, batch_;
  uint64_t requests_ = 0;
};

}  // namespace heddle::daemon::testing
