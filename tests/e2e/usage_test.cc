// What is measured of programs: busy time is that of kernels, fills and library calls, and no moment counts twice.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "core/clock.h"
#include "node.h"

namespace heddle::e2e {
namespace {

// Of the tasks that have ended, all in all.
struct Measured {
  uint64_t launches = 0, kernel_ns = 0, copies = 0, copy_ns = 0, busy_ns = 0;
  uint64_t wall_ns = 0;  // from the program's start to its end
};

struct UsageOf : testing::Test {
  void SetUp() override {
    HEDDLE_NEEDS_WORKLOADS();
    ASSERT_TRUE(node.ready()) << node.why();
  }
  Measured measure(const Arguments& program) {
    const uint64_t before = node.ask({{"command", "trace"}, {"since", nullptr}}).value("next", uint64_t{0});
    const TimePoint begin = MonotonicClock().now();
    const Finished finished = node.run(program);
    Measured measured;
    measured.wall_ns = static_cast<uint64_t>((MonotonicClock().now() - begin).count());
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
    EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
    for (const Json& event : node.ask({{"command", "trace"}, {"since", before}}).value("events", Json::array())) {
      measured.launches += event.value("launches", uint64_t{0});
      measured.kernel_ns += event.value("kernel_ns", uint64_t{0});
      measured.copies += event.value("copies", uint64_t{0});
      measured.copy_ns += event.value("copy_ns", uint64_t{0});
      measured.busy_ns += event.value("busy_ns", uint64_t{0});
    }
    return measured;
  }
  Node node;
};

TEST_F(UsageOf, AProgramThatOnlyFillsIsBusy) {
  const Measured measured = measure({HEDDLE_E2E_PROGRAMS "/device_time", "fills"});
  EXPECT_EQ(measured.launches, 0u);
  EXPECT_GT(measured.busy_ns, 0u);
  EXPECT_LE(measured.busy_ns, measured.wall_ns);
}

TEST_F(UsageOf, AProgramThatOnlyCallsCublasIsBusy) {
  if (::access(HEDDLE_E2E_PROGRAMS "/device_time_cublas", X_OK) != 0)
    GTEST_SKIP() << "the toolkit has no cuBLAS to link";
  const Measured measured = measure({HEDDLE_E2E_PROGRAMS "/device_time_cublas"});
  EXPECT_EQ(measured.launches, 0u);
  EXPECT_GT(measured.busy_ns, 0u);
  EXPECT_LE(measured.busy_ns, measured.wall_ns);
}

TEST_F(UsageOf, CopiesCountApart) {
  const Measured measured = measure({HEDDLE_E2E_PROGRAMS "/device_time", "copies"});
  EXPECT_GE(measured.copies, 20u);
  EXPECT_GT(measured.copy_ns, 0u);
  EXPECT_LE(measured.copy_ns, measured.wall_ns);
  EXPECT_EQ(measured.busy_ns, 0u);
}

TEST_F(UsageOf, StreamsSideBySideCountOnce) {
  const Measured measured = measure({HEDDLE_E2E_PROGRAMS "/device_time", "streams", "90000000"});
  EXPECT_EQ(measured.launches, 2u);
  EXPECT_GT(measured.busy_ns, 0u);
  EXPECT_LE(measured.busy_ns, measured.wall_ns);
  // They began together and took about as long. A busy host may start the second one a tenth of a second later.
  EXPECT_LT(10 * measured.busy_ns, 8 * measured.kernel_ns);
}

TEST_F(UsageOf, TopShowsAJobAtWork) {
  Process program = node.spawn_run({"sh", "-c", "while :; do " HEDDLE_E2E_PROGRAMS "/device_time fills; done"});
  ASSERT_TRUE(Node::eventually([&] {
    const Json jobs = node.ask({{"command", "ps"}}).value("jobs", Json::array());
    return !jobs.empty() && jobs[0]["usage"].value("busy_ns", uint64_t{0}) > 0;
  }));
  const Finished top = node.heddle({"top", "--json", "--count", "3", "--every", "1s"});
  EXPECT_EQ(top.status, 0) << top.err;
  std::istringstream lines(top.out);
  std::vector<Json> looks;
  for (std::string line; std::getline(lines, line);) looks.push_back(Json::parse(line));
  ASSERT_EQ(looks.size(), 3u) << top.out;
  EXPECT_TRUE(looks[0]["jobs"][0]["busy"].is_null());
  EXPECT_GT(looks[1]["jobs"][0]["busy"].get<double>() + looks[2]["jobs"][0]["busy"].get<double>(), 0.0);
  EXPECT_GT(looks[2]["interval_ns"], 0);
  program.signal(SIGTERM);
  EXPECT_EQ(node.heddle({"top", "--every", "1ms"}).status, 1);
}

// As CSI, which some terminals obey, and DEL.
TEST(Json, NamesOfJobsAreShownAndNotObeyed) {
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const Process job = node.spawn({"run", "--name", "a\xc2\x9b\x7f", "--", "sleep", "600"});
  ASSERT_TRUE(Node::eventually([&] { return !node.ask({{"command", "ps"}}).value("jobs", Json::array()).empty(); }));
  for (const Arguments& command : {Arguments{"ps", "--json"}, {"top", "--json", "--count", "1"}}) {
    const Finished shown = node.heddle(command);
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_NE(shown.out.find("a\\u009b\\u007f"), std::string::npos) << shown.out;
  }
}

// A look of a running `heddle top --json` that `holds` accepts, {} where none comes.
Json look_where(const Process& top, const std::function<bool(const Json&)>& holds) {
  Json found;
  EXPECT_TRUE(Node::eventually(
      [&] {
        const std::string out = top.out();
        std::istringstream lines(out.substr(0, out.find_last_of('\n') + 1));
        for (std::string line; found.is_null() && std::getline(lines, line);) {
          Json look = Json::parse(line);
          if (holds(look)) found = std::move(look);
        }
        return !found.is_null();
      },
      std::chrono::seconds(60)))
      << top.out();
  return found;
}

// 40 MiB each, held over many short bursts.
Arguments episodes() {
  return {workload("episodes"), "--size", "10m",     "--gap", "20", "--launches", "1", "--steps", "1",
          "--iterations",       "100000", "--check", "none"};
}

bool has_two_tasks(const Json& look) {
  return look["jobs"].size() == 2 && look["jobs"][0]["state"] != "idle" && look["jobs"][1]["state"] != "idle";
}

// On 64 MiB: the second waits for as long as the first is there.
TEST(Top, TellsWhoRunsAndWhatTheOtherWaitsFor) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node("[[device]]\npreset = 'P100'\ncount = 1\nmemory = '64M'\nslowdown = 0\ncopy_slowdown = 0\n");
  ASSERT_TRUE(node.ready()) << node.why();
  const Process first = node.spawn_run(episodes()), second = node.spawn_run(episodes());
  const Process top = node.spawn({"top", "--json"});
  const Json look = look_where(top, [](const Json& each) {
    return has_two_tasks(each) && (each["jobs"][0]["busy"] > 0 || each["jobs"][1]["busy"] > 0);
  });
  ASSERT_FALSE(look.is_null()) << node.log();
  const bool first_runs = look["jobs"][0]["state"] == "running";
  const Json &runs = look["jobs"][first_runs ? 0 : 1], &waits = look["jobs"][first_runs ? 1 : 0];
  EXPECT_EQ(runs["devices"], Json::array({0}));
  EXPECT_TRUE(runs["wait"].is_null());
  EXPECT_EQ(waits["state"], "waiting");
  EXPECT_EQ(waits["busy_ns"], 0);
  EXPECT_EQ(waits["wait"]["cause"], "memory");
  EXPECT_NE(waits["wait"]["why"].get<std::string>().find("most is free on device 0: 24 MiB of 64 MiB"),
            std::string::npos)
      << waits;
  EXPECT_GT(waits["wait"]["for_ns"], 0);
  EXPECT_EQ(look["devices"][0]["free"], 24 << 20);
  EXPECT_GT(look["devices"][0]["busy"], 0);
  const Finished once = node.heddle({"top", "--once"});
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_NE(once.out.find("memory  "), std::string::npos) << once.out;
}

TEST(Top, TellsWhoHasTheLeaseAndWhoWaitsForIt) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(
      "[dispatch]\npolicy = 'fs'\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '64M'\nslowdown = 2000\n"
      "copy_slowdown = 0\n");
  ASSERT_TRUE(node.ready()) << node.why();
  const Arguments busy{workload("episodes"), "--size", "256k",    "--gap", "0", "--launches", "100",
                       "--iterations",       "100000", "--check", "none"};
  const Process first = node.spawn_run(busy), second = node.spawn_run(busy);
  const Process top = node.spawn({"top", "--json"});
  const Json look = look_where(top, [](const Json& each) {
    if (!has_two_tasks(each) || each["devices"][0]["leases"].empty()) return false;
    const Json &one = each["jobs"][0]["wait"], &other = each["jobs"][1]["wait"];
    return (one.is_object() && one["cause"] == "the lease") != (other.is_object() && other["cause"] == "the lease");
  });
  ASSERT_FALSE(look.is_null()) << node.log();
  const bool first_waits = look["jobs"][0]["wait"].is_object();
  const Json &waits = look["jobs"][first_waits ? 0 : 1], &holds = look["jobs"][first_waits ? 1 : 0];
  EXPECT_EQ(waits["state"], "running") << "it has its device, and takes turns on it";
  EXPECT_EQ(waits["lease"]["state"], "waits");
  EXPECT_EQ(look["devices"][0]["leases"][0]["job"], holds["job"]);
  EXPECT_NE(waits["wait"]["why"].get<std::string>().find("fs lends device 0 to job " + holds["job"].dump()),
            std::string::npos)
      << waits;
}

TEST_F(UsageOf, TopEndsWellWithCtrlC) {
  Process top = node.spawn({"top", "--every", "10s"});
  ASSERT_TRUE(Node::eventually([&] { return top.out().find("DEVICE") != std::string::npos; }));
  top.signal(SIGINT);
  const Finished finished = top.wait(std::chrono::seconds(5));
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_NE(finished.out.find("DEVICE"), std::string::npos) << finished.out;
}

// As where a service's SIGPIPE is ignored.
TEST_F(UsageOf, TopEndsWhenNobodyReadsIt) {
  const std::string top = HEDDLE_BIN_DIRECTORY "/heddle top --json --every 1s";
  const Finished finished = node.run({"sh", "-c", "trap '' PIPE; " + top + " | head -n 1"}, std::chrono::seconds(20));
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_NE(finished.err.find("cannot write"), std::string::npos) << finished.err;
}

TEST_F(UsageOf, TopGoesOnWhenHeddledIsRestarted) {
  Process top = node.spawn({"top", "--json", "--count", "6", "--every", "1s"});
  ::usleep(500'000);
  const pid_t heddled = node.daemon_pid();
  ::kill(heddled, SIGKILL);
  const Finished finished = top.wait(std::chrono::seconds(20));
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_EQ(std::count(finished.out.begin(), finished.out.end(), '\n'), 6) << finished.out;
  EXPECT_NE(node.daemon_pid(), heddled);
}

// On a device that keeps its pace, too: the slowed device's time is wall time.
TEST(PacedUsage, BusyTimeIsWallTimeAndShowsWhileAKernelRuns) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node("[[device]]\npreset = 'P100'\ncount = 1\nmemory = '64M'\nslowdown = 500\ncopy_slowdown = 0\n");
  ASSERT_TRUE(node.ready()) << node.why();
  const TimePoint begin = MonotonicClock().now();
  Process program = node.spawn_run({HEDDLE_E2E_PROGRAMS "/device_time", "streams", "300000"});
  uint64_t seen = 0;
  EXPECT_TRUE(Node::eventually([&] {
    for (const Json& job : node.ask({{"command", "ps"}}).value("jobs", Json::array())) {
      const Json usage = job.value("usage", Json::object());
      if (usage.value("busy_now", false) && usage.value("launches", 1) == 0) seen = usage.value("busy_ns", 0ull);
    }
    return seen > 0;
  }));
  const Finished finished = program.wait();
  const auto wall = static_cast<uint64_t>((MonotonicClock().now() - begin).count());
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
  const Json events = node.ask({{"command", "trace"}, {"since", 0}}).value("events", Json::array());
  ASSERT_FALSE(events.empty());
  const Json& ended = events.back();
  EXPECT_EQ(ended["launches"], 2);
  EXPECT_LE(ended["busy_ns"].get<uint64_t>(), wall);
  EXPECT_LT(10 * ended["busy_ns"].get<uint64_t>(), 8 * ended["kernel_ns"].get<uint64_t>());
}

}  // namespace
}  // namespace heddle::e2e
