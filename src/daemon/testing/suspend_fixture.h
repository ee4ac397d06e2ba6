#pragma once

#include <cstdint>
#include <string>

#include "daemon/testing/fixture.h"

namespace heddle::daemon::testing {

// One job that is suspended and resumed.
class SuspendJobTest : public HouseholdTest {
 protected:
  TestClient running_in_job(Bytes bytes) {
    TestClient client = running(bytes);
    job_ = session_of(client)["job"];
    return client;
  }
  Json session_of(const TestClient& client) {
    const auto ps = house_->ask({{"command", "ps"}});
    if (!ps) return {};
    for (const Json& session : (*ps)["sessions"])
      if (session["session"] == client.welcome().session) return session;
    return {};
  }
  Result<Json> tell(const char* command) { return house_->ask({{"command", command}, {"job", job_}}); }
  void wait_for_state(const std::string& state) {
    house_->wait_for("ps", [&](const Json& ps) {
      for (const Json& session : ps["sessions"])
        if (session["job"] == job_ && !session["tasks"].empty()) return session["tasks"][0]["state"] == state;
      return false;
    });
  }
  void suspended() {
    const auto told = tell("suspend");
    ASSERT_TRUE(told) << told.error().text;
    wait_for_state("suspended");
  }
  void resumed() {
    const auto told = tell("resume");
    ASSERT_TRUE(told) << told.error().text;
  }
  void expect_used(Bytes bytes) {
    house_->wait_for("devices", [&](const Json& answer) { return answer["devices"][0]["used"] == bytes.value; });
  }
  void restart(const char* name = "heddled") {
    const pid_t old = house_->heddled();
    const bool vault = std::string(name) == "heddle-vault";
    house_->kill(vault ? house_->processes(name).front() : old);
    if (vault)
      house_->wait_for("status", [](const Json& answer) { return answer["vault_replacements"] == 1; });
    else
      house_->wait_for("status", [&](const Json& answer) { return answer["pid"] != old; });
  }
  uint64_t job_ = 0;
};

}  // namespace heddle::daemon::testing
