// Programs beside one another: placement, waiting, budgets, and who may see whom.

#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "node.h"

namespace heddle::e2e {
namespace {

// vecadd with three arrays of `floats` floats; slow enough devices make it stay for a while.
Arguments vecadd(const std::string& floats) {
  return {workload("vecadd"), "--size", floats, "--check", "sample"};
}

std::string one_paced_device(const std::string& more = "") {
  return "[daemon]\nwarm_workers = 1\n" + more +
         "\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '64M'\nslowdown = 25000\ncopy_slowdown = 10\n";
}

TEST(Sharing, AJobThatDoesNotFitWaitsInsteadOfFailing) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_paced_device());
  ASSERT_TRUE(node.ready()) << node.why();
  // 48 MB each on 64 MB: one after the other.
  std::vector<Process> jobs;
  for (int n = 0; n < 3; ++n) jobs.push_back(node.spawn_run(vecadd("4000000")));
  bool seen_waiting = false;
  EXPECT_TRUE(Node::eventually(
      [&] {
        for (const Json& session : node.ask({{"command", "ps"}}).value("sessions", Json::array())) {
          for (const Json& task : session.value("tasks", Json::array())) {
            seen_waiting |= task.value("state", "") == "waiting" && !task.value("reason", "").empty();
          }
        }
        const Json devices = node.ask({{"command", "devices"}});
        EXPECT_LE(devices["devices"][0]["used"], devices["devices"][0]["memory"]);
        return !jobs[0].running() && !jobs[1].running() && !jobs[2].running();
      },
      std::chrono::seconds(120)));
  for (Process& job : jobs) {
    const Finished finished = job.wait();
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  }
  EXPECT_TRUE(seen_waiting);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

// Three that begin together may all fail: each can hold what another needs.
TEST(Sharing, UnderCgMallocFailsWhenTheDeviceIsFull) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_paced_device(), "cg:2");
  ASSERT_TRUE(node.ready()) << node.why();
  Arguments endless = vecadd("4000000");
  endless.insert(endless.end(), {"--iterations", "10000"});
  Process holder = node.spawn_run(endless);
  ASSERT_TRUE(Node::eventually([&] { return node.ask({{"command", "devices"}})["devices"][0]["used"] >= 48'000'000; }));
  const Finished refused = node.run(vecadd("4000000"));
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("out of memory"), std::string::npos) << refused.err;
  EXPECT_TRUE(holder.running());
  holder.signal(SIGTERM);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
  EXPECT_EQ(node.run(vecadd("400000")).status, 0);
}

TEST(Sharing, SaGivesEachJobADeviceOfItsOwn) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_paced_device(), "sa");
  ASSERT_TRUE(node.ready()) << node.why();
  Process first = node.spawn_run(vecadd("1000000")), second = node.spawn_run(vecadd("1000000"));
  EXPECT_TRUE(Node::eventually(
      [&] {
        EXPECT_LE(node.ask({{"command", "devices"}})["devices"][0]["tasks"], 1);
        return !first.running() && !second.running();
      },
      std::chrono::seconds(120)));
  EXPECT_EQ(first.wait().status, 0);
  EXPECT_EQ(second.wait().status, 0);
}

// Under sa the second device is waited for in cudaMalloc, for as long as its job takes.
TEST(Sharing, AThreadThatWaitsInMallocKeepsNoOtherFromItsDevice) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node("[[device]]\npreset = 'P100'\ncount = 2\nmemory = '64M'\nslowdown = 50000\ncopy_slowdown = 0\n", "sa");
  ASSERT_TRUE(node.ready()) << node.why();
  Arguments endless = vecadd("4000000");
  endless.insert(endless.end(), {"--iterations", "10000"});
  Process holder = node.spawn_run(endless);
  const auto tasks = [&] {
    const Json devices = node.ask({{"command", "devices"}});
    return devices["devices"][0]["tasks"].get<int>() + devices["devices"][1]["tasks"].get<int>();
  };
  ASSERT_TRUE(Node::eventually([&] { return tasks() == 1; }));
  const std::string mark = node.directory() + "/served";
  Process program = node.spawn_run({HEDDLE_E2E_PROGRAMS "/waiting_thread", mark});
  const bool served = Node::eventually([&] { return ::access(mark.c_str(), F_OK) == 0 || !program.running(); });
  EXPECT_TRUE(served && program.running());
  holder.signal(SIGTERM);
  const Finished finished = program.wait();
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

TEST(Sharing, ABudgetHoldsForTheJob) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  Arguments arguments{"run", "--mem", "16M", "--"};
  const Arguments program = vecadd("4000000");
  arguments.insert(arguments.end(), program.begin(), program.end());
  const Finished finished = node.heddle(arguments);
  EXPECT_EQ(finished.status, 1);
  EXPECT_NE(finished.err.find("out of memory"), std::string::npos) << finished.err;
}

TEST(Sharing, WaitTimeoutEndsAProgramThatWaitsTooLong) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_paced_device(), "sa");
  ASSERT_TRUE(node.ready()) << node.why();
  Process first = node.spawn_run({workload("vecadd"), "--size", "4000000", "--check", "sample"});
  ASSERT_TRUE(Node::eventually([&] { return node.ask({{"command", "devices"}})["devices"][0]["tasks"] == 1; }));
  const Finished second = node.heddle({"run", "--wait-timeout", "500ms", "--", workload("vecadd")});
  if (second.status == 0) GTEST_SKIP() << "the first program was over before the second had waited";
  EXPECT_EQ(second.status, 124) << second.err;
  EXPECT_NE(second.err.find("waiting for"), std::string::npos) << second.err;
}

TEST(Sharing, AJobMayAskForAShareWithinItsLimits) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_paced_device());
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished refused = node.heddle({"run", "--weight", "1000", "--", workload("vecadd")});
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.err.find("weight 1000, and limits.weight_of_job allows 100"), std::string::npos) << refused.err;
  const Finished wrong = node.heddle({"run", "--share", "0.6", "--limit", "0.3", "--", workload("vecadd")});
  EXPECT_NE(wrong.err.find("share 0.6 is above limit 0.3"), std::string::npos) << wrong.err;
  const Finished served = node.heddle({"run", "--weight", "2", "--share", "0.3", "--limit", "0.6", "--app", "v", "--",
                                       workload("vecadd"), "--size", "1000"});
  EXPECT_EQ(served.status, 0) << served.err;
}

TEST(Sharing, CancelEndsTheJobAndFreesWhatItHeld) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_paced_device());
  ASSERT_TRUE(node.ready()) << node.why();
  Process job = node.spawn_run(vecadd("4000000"));
  Json sessions;
  ASSERT_TRUE(Node::eventually([&] {
    sessions = node.ask({{"command", "ps"}}).value("sessions", Json::array());
    return !sessions.empty() && !sessions[0].value("tasks", Json::array()).empty();
  }));
  EXPECT_EQ(node.heddle({"cancel", sessions[0]["job"].dump()}).status, 0);
  EXPECT_NE(job.wait(std::chrono::seconds(20)).status, 0);
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
  EXPECT_NE(node.heddle({"cancel", "999999"}).status, 0);
}

TEST(Batch, ReportsAndTracesAQueue) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string jobs = node.directory() + "/jobs.toml", trace = node.directory() + "/trace.json";
  std::ofstream(jobs) << "[[job]]\ncommand = ['" << workload("vecadd") << "']\ncount = 3\n"
                      << "[[job]]\nname = 'wrong'\ncommand = ['false']\n";
  const std::string report = node.directory() + "/report.html";
  const Finished finished = node.heddle(
      {"batch", jobs, "--policy", "mgb-warps", "--workers", "2", "--json", "--trace", trace, "--report", report});
  EXPECT_EQ(finished.status, 1) << finished.err;  // one job crashed
  const Json result = Json::parse(finished.out, nullptr, false);
  ASSERT_FALSE(result.is_discarded()) << finished.out;
  EXPECT_EQ(result["completed"], 3);
  EXPECT_EQ(result["crashed"], 1);
  EXPECT_EQ(result["workers"], 2);
  EXPECT_EQ(result["workers_asked"], "2");
  std::ifstream file(trace);
  const Json events = Json::parse(file, nullptr, false);
  ASSERT_FALSE(events.is_discarded());
  int slices = 0;
  for (const Json& event : events["traceEvents"]) slices += event["ph"] == "X";
  EXPECT_EQ(slices, 3);
  std::ifstream page(report);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_EQ(std::string_view(text).substr(0, 15), "<!DOCTYPE html>");
  EXPECT_NE(text.find("fits on"), std::string::npos);  // why a task came to its device
  EXPECT_NE(text.find("status 1: "), std::string::npos);
}

TEST(Batch, RunsAsManyAtOnceAsTheDevicesHaveUseForUnlessToldOtherwise) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string jobs = node.directory() + "/jobs.toml";
  std::ofstream(jobs) << "[[job]]\ncommand = ['" << workload("vecadd") << "']\ncount = 12\n";
  const auto result_of = [&](std::vector<std::string> options) {
    std::vector<std::string> arguments{"batch", jobs, "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finished finished = node.heddle(arguments);
    EXPECT_EQ(finished.status, 0) << finished.err;
    return Json::parse(finished.out, nullptr, false);
  };
  const Json free = result_of({});
  EXPECT_EQ(free["completed"], 12);
  EXPECT_EQ(free["workers_asked"], "auto");
  EXPECT_GE(free["workers"], 2);  // four are started before any has a task
  const Json limited = result_of({"--max-workers", "1"});
  EXPECT_EQ(limited["completed"], 12);
  EXPECT_EQ(limited["workers"], 1);
  const Finished both = node.heddle({"batch", jobs, "--workers", "8", "--max-workers", "2"});
  EXPECT_NE(both.status, 0);
  EXPECT_NE(both.err.find("--max-workers is 2 and --workers '8'"), std::string::npos) << both.err;
}

bool some_process_has(const std::string& argument) {
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(argument) != std::string::npos) return true;
  }
  return false;
}

TEST(Batch, LeavesNoProgramBehindWhereItEndsWithAnError) {
  Node node(Node::default_config() + "[limits]\njobs_per_user = 1\n");
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string jobs = node.directory() + "/jobs.toml", followed = node.directory() + "/followed";
  std::ofstream(followed) << "";
  std::ofstream(jobs) << "[[job]]\ncommand = ['tail', '-f', '" << followed << "']\ncount = 2\n";
  const Finished finished = node.heddle({"batch", jobs, "--workers", "2"});
  EXPECT_NE(finished.err.find("limits.jobs_per_user"), std::string::npos) << finished.err;
  EXPECT_FALSE(some_process_has(followed));
}

TEST(Batch, BytesThatAreNoTextDoNotBreakItsResults) {
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string jobs = node.directory() + "/jobs.toml", result = node.directory() + "/result.json";
  std::ofstream(jobs) << "[[job]]\ncommand = ['printf', 'caf\\351\\n']\n";
  const Finished finished = node.heddle({"batch", jobs, "--json", "--json-file", result});
  EXPECT_EQ(finished.status, 0) << finished.err;
  std::ifstream file(result);
  const Json written = Json::parse(file, nullptr, false);
  ASSERT_FALSE(written.is_discarded());
  EXPECT_EQ(written["jobs"][0]["last_line"], "caf\xef\xbf\xbd");
  EXPECT_EQ(node.heddle({"run", "--name", "caf\xe9", "--", "true"}).status, 0);
}

// The first job takes heddled's socket away; the second, where it runs beside, goes on until it is there again.
TEST(Batch, OutlastsAHeddledThatCannotBeReachedWhateverRuns) {
  const std::vector<Arguments> all{{"--workers", "1"}, {"--workers", "2"}, {"--max-workers", "2"}};
  for (const Arguments& workers : all) {
    Node node;
    ASSERT_TRUE(node.ready()) << node.why();
    const std::string jobs = node.directory() + "/jobs.toml", away = node.directory() + "/away";
    const std::string mark = node.directory() + "/mark";
    std::ofstream(jobs) << "[[job]]\ncommand = ['sh', '-c', 'mv " << node.socket() << " " << away << "; echo > " << mark
                        << "']\n[[job]]\ncommand = ['sh', '-c', 'until [ -e " << mark << " ]; do sleep 0.05; done; "
                        << "while [ -e " << away
                        << " ]; do sleep 0.05; done']\n[[job]]\ncommand = ['true']\ncount = 2\n";
    Arguments arguments{"batch", jobs, "--json"};
    arguments.insert(arguments.end(), workers.begin(), workers.end());
    Process batch = node.spawn(arguments);
    const bool waits = Node::eventually(
        [&] { return batch.err().find("waiting for heddled") != std::string::npos || !batch.running(); });
    EXPECT_TRUE(waits && batch.running()) << batch.err();
    std::filesystem::rename(away, node.socket());
    const Finished finished = batch.wait();
    EXPECT_EQ(finished.status, 0) << workers[1] << finished.err;
    EXPECT_EQ(Json::parse(finished.out, nullptr, false)["completed"], 4) << finished.out << finished.err;
  }
}

TEST(Batch, LosesNothingWhereHeddledIsRestarted) {
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string jobs = node.directory() + "/jobs.toml", mark = node.directory() + "/mark";
  std::ofstream(jobs) << "[[job]]\ncommand = ['sh', '-c', 'until [ -e " << mark << " ]; do sleep 0.05; done']\n"
                      << "[[job]]\ncommand = ['true']\ncount = 3\n";
  Process batch = node.spawn({"batch", jobs, "--json", "--workers", "1"});
  ASSERT_TRUE(Node::eventually([&] { return !node.ask({{"command", "ps"}}).value("jobs", Json::array()).empty(); }));
  const pid_t heddled = node.daemon_pid();
  ::kill(heddled, SIGKILL);
  EXPECT_TRUE(Node::eventually([&] { return node.daemon_pid() > 0 && node.daemon_pid() != heddled; }));
  std::ofstream(mark) << "";
  const Finished finished = batch.wait();
  EXPECT_EQ(finished.status, 0) << finished.err;
  EXPECT_NE(finished.err.find("restarted during the batch"), std::string::npos) << finished.err;
  EXPECT_EQ(Json::parse(finished.out, nullptr, false)["completed"], 4) << finished.out << finished.err;
}

uid_t user_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Uid:")) return static_cast<uid_t>(std::stoul(line.substr(4)));
  }
  return 0;
}

TEST(SecondUser, EachWorkerHasAUidOfItsOwnWhereConfigured) {
  HEDDLE_NEEDS_WORKLOADS();
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  std::string config = Node::default_config();
  config.insert(config.find('\n') + 1, "worker_uids = \"212000-212063\"\n");
  Node node(config);
  ASSERT_TRUE(node.ready()) << node.why();
  ASSERT_TRUE(Node::eventually([&] {
    const auto workers = node.worker_pids();
    return workers.size() >= 2 && std::all_of(workers.begin(), workers.end(), user_of);
  }));
  std::set<uid_t> users;
  for (const pid_t worker : node.worker_pids()) {
    const uid_t user = user_of(worker);
    EXPECT_TRUE(user > 212000 && user < 212064) << user;
    EXPECT_TRUE(users.insert(user).second) << "two workers have " << user;
  }
  const Finished result = node.run({workload("vecadd")});
  EXPECT_EQ(result.status, 0) << result.err;
}

// As root only: becomes another user in a child and looks what it can reach.
TEST(SecondUser, CannotReachSocketRingOrMemory) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string fd_directory = "/proc/" + std::to_string(node.daemon_pid()) + "/fd";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    int reached = 0;
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(99);
    reached |= ::access(node.socket().c_str(), R_OK | W_OK) == 0 ? 1 : 0;
    reached |= ::access(node.directory().c_str(), X_OK) == 0 ? 2 : 0;
    reached |= ::access(fd_directory.c_str(), R_OK) == 0 ? 4 : 0;
    for (const pid_t worker : node.worker_pids()) {
      const std::string memory = "/proc/" + std::to_string(worker) + "/mem";
      reached |= ::access(memory.c_str(), R_OK) == 0 ? 8 : 0;
    }
    ::_exit(reached);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "bits: 1 socket, 2 directory, 4 heddled's descriptors, 8 a worker's memory";
}

}  // namespace
}  // namespace heddle::e2e
