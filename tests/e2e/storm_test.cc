// Everything that may happen to a node, at random moments and all at once, while programs come and go: kills of
// programs, workers, heddled, the vault and keepers; workers that somebody stops; jobs that are suspended, swapped out
// and resumed; devices taken back for requests; a program's fault that its neighbours share. Work under way can be run
// again ([durability] level = "full"). What must hold:
// - a program that ends well has right results, and nobody ends with wrong ones;
// - a program that fails was hit itself, or is told a reason that docs/revocation.md has;
// - nobody waits for ever;
// - at the end nothing is left: no memory, no swap space, no process.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <array>
#include <fstream>
#include <list>
#include <optional>
#include <random>
#include <thread>

#include "core/sanitizer.h"
#include "core/testing/patience.h"
#include "steps.h"
#include "told.h"

namespace heddle::e2e {
namespace {

// HEDDLE_STORM_EVENTS and HEDDLE_STORM_SEED lengthen or repeat a run; `make storm` has 10,000 events.
constexpr unsigned kEvents = kSanitized ? 60 : 200;
constexpr size_t kPrograms = 5;  // at once
constexpr Duration kPatience = std::chrono::seconds(120);

enum class Event { kWorker, kHeddled, kVault, kKeeper, kProgram, kGuilty, kStop, kSuspend, kSwap, kResume, kStill };

// Some are more likely than others: it takes a while until heddled and its programs have found each other again.
struct Kind {
  const char* name;
  double weight;
};
constexpr std::array kKinds{Kind{"workers killed", 20},  Kind{"heddleds killed", 6}, Kind{"vaults killed", 4},
                            Kind{"keepers killed", 6},   Kind{"programs killed", 8}, Kind{"faults", 4},
                            Kind{"workers stopped", 10}, Kind{"jobs suspended", 10}, Kind{"jobs swapped", 14},
                            Kind{"jobs resumed", 18},    Kind{"standstills", 3}};

class Storm {
 public:
  explicit Storm(const std::string& config, bool gpu = false) : node_(config), gpu_(gpu) {
    std::string directory = node_.directory() + "/guilty-XXXXXX";
    EXPECT_NE(::mkdtemp(directory.data()), nullptr);
    std::ofstream(directory + "/go").flush();  // nobody waits
    guilty_ = {program("illegal_access"), directory};
  }

  void rage(unsigned events) {
    ASSERT_TRUE(node_.ready()) << node_.why();
    while (happened() < events && !testing::Test::HasFailure()) {
      while (jobs_.size() < kPrograms) jobs_.push_back(start());
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 150));
      if (const auto event = static_cast<Event>(draw()); let_happen(event)) ++counts_[static_cast<size_t>(event)];
      continue_worker();
      reap();
    }
    calm_down();
    report();
  }

 private:
  struct Job {
    Process process;
    std::string name;
    bool killed = false, guilty = false;
  };

  unsigned happened() const {
    unsigned sum = 0;
    for (const unsigned count : counts_) sum += count;
    return sum;
  }

  size_t draw() {
    std::array<double, kKinds.size()> weights;
    std::transform(kKinds.begin(), kKinds.end(), weights.begin(), [](const Kind& kind) { return kind.weight; });
    return std::discrete_distribution<size_t>(weights.begin(), weights.end())(random_);
  }

  Job start(bool guilty = false) {
    // They run for some tenths of a second; two of them are somebody's requests.
    static const std::vector<Arguments> kCommands{{"vecadd"},
                                                  {"vecadd", "--size", "400000", "--iterations", "30"},
                                                  {"vecadd", "--size", "4000000", "--check", "sample"},
                                                  {"bfs"},
                                                  {"needle"},
                                                  {"srad_v2"},
                                                  {"nested_pointers"},
                                                  {"transpose", "--iterations", "60"},
                                                  {"nn", "--mode", "train"}};
    static const Arguments kRequests{"episodes", "--size",     "4096", "--steps",      "50", "--gap",
                                     "20",       "--launches", "20",   "--iterations", "20"};
    const bool request = !guilty && random_() % 4 == 0;
    Arguments command = guilty ? guilty_ : request ? kRequests : kCommands[random_() % kCommands.size()];
    if (!guilty) command[0] = workload(command[0]);
    Arguments arguments{"run"};
    if (request) arguments.insert(arguments.end(), {"--class", "user-facing", "--slo", "50ms"});
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    return {node_.spawn(arguments), command[0], false, guilty};
  }

  // Whether it did: there may be nobody to whom it could.
  bool let_happen(Event event) {
    switch (event) {
      case Event::kWorker:
        return kill_worker();
      case Event::kHeddled:
        return node_.vault_pid() > 1 && signal(node_.daemon_pid(), SIGKILL);
      case Event::kVault:  // not while heddled's successor learns from it what there is: with both all is forgotten
        return node_.daemon_pid() > 1 && signal(node_.vault_pid(), SIGKILL);
      case Event::kKeeper:
        return gpu_ && signal(drawn(node_.keeper_pids()), SIGKILL);
      case Event::kProgram:
        return kill_program();
      case Event::kGuilty:
        if (gpu_) return false;  // the driver for tests shares no faults
        jobs_.push_back(start(true));
        return true;
      case Event::kStop:
        if (stopped_) return false;
        stopped_ = drawn(node_.worker_pids());
        return signal(*stopped_, SIGSTOP);
      case Event::kSuspend:
        return ask_job("suspend", false);
      case Event::kSwap:
        return ask_job("suspend", true);
      case Event::kResume:
        return ask_job("resume", false);
      default:
        return stand_still();
    }
  }

  pid_t drawn(const std::vector<pid_t>& pids) { return pids.empty() ? -1 : pids[random_() % pids.size()]; }
  static bool signal(pid_t pid, int number) { return pid > 1 && ::kill(pid, number) == 0; }

  void continue_worker() {
    if (stopped_ && random_() % 2 == 0) signal(*std::exchange(stopped_, std::nullopt), SIGCONT);
  }

  // For longer than heddled waits for its vault. Afterwards the worker that kStop has stopped runs again, too.
  bool stand_still() {
    node_.stand_still(std::chrono::milliseconds(1200));
    stopped_.reset();
    return true;
  }

  std::vector<pid_t> workers_at_work() {
    std::vector<pid_t> at_work;
    for (const Json& session : node_.ask({{"command", "ps"}}).value("sessions", Json::array())) {
      for (const Json& task : session["tasks"])
        if (session["usage"]["busy_now"] == true && task.contains("worker_pid")) at_work.push_back(task["worker_pid"]);
    }
    return at_work;
  }

  // One with work under way, if there is any soon: the others' deaths cost nobody anything.
  bool kill_worker() {
    constexpr Duration kSoon = std::chrono::seconds(2);
    std::vector<pid_t> at_work;
    const bool any = Node::eventually([&] { return !(at_work = workers_at_work()).empty(); }, kSoon);
    hit_at_work_ += any;
    return signal(drawn(any ? at_work : node_.worker_pids()), SIGKILL);
  }

  bool kill_program() {
    if (jobs_.empty()) return false;
    Job& job = *std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(random_() % jobs_.size()));
    const std::string command = std::to_string(job.process.pid());
    std::ifstream children("/proc/" + command + "/task/" + command + "/children");
    pid_t child = -1;
    if (!(children >> child) || !signal(child, SIGKILL)) return false;
    return job.killed = true;
  }

  bool ask_job(const char* command, bool swap) {
    const Json jobs = node_.ask({{"command", "ps"}}).value("jobs", Json::array());
    if (jobs.empty()) return false;
    const Json answer =
        node_.ask({{"command", command}, {"job", jobs[random_() % jobs.size()]["job"]}, {"swap", swap}});
    return !answer.empty() && !answer.contains("error");
  }

  void reap() {
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      const bool ended = !job->process.running();
      if (ended) judge(*job, job->process.wait());
      job = ended ? jobs_.erase(job) : std::next(job);
    }
  }

  void judge(const Job& job, const Finished& finished) {
    const auto all = [&] {
      return "\n" + job.name + ", " + std::to_string(happened()) + " events behind it, status " +
             std::to_string(finished.status) + "\n" + finished.out + finished.err + node_.log();
    };
    if (job.guilty || (job.killed && finished.status == 128 + SIGKILL)) {
      EXPECT_NE(finished.status, 0) << "a fault, and nobody is told" << all();
      return;
    }
    if (finished.status == 0) {
      EXPECT_NE(finished.out.find("PASS"), std::string::npos) << all();
      ++right_;
      return;
    }
    EXPECT_TRUE(is_told_why(finished)) << "a wrong result, or told no reason that is known" << all();
    ++told_;
  }

  // Nothing more happens, and everybody may go on: all come to their ends.
  void calm_down() {
    if (stopped_) signal(*stopped_, SIGCONT);
    Patience patience(kPatience);
    while (!jobs_.empty() && !patience.is_over()) {
      for (const Json& job : node_.ask({{"command", "ps"}}).value("jobs", Json::array()))
        node_.ask({{"command", "resume"}, {"job", job["job"]}});
      reap();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (const Job& job : jobs_)
      ADD_FAILURE() << job.name << " does not end: " << job.process.out() << job.process.err();
    EXPECT_TRUE(jobs_.empty()) << node_.ask({{"command", "ps"}}) << node_.log();
    jobs_.clear();
    const auto devices = [&] { return node_.ask({{"command", "devices"}}); };
    EXPECT_TRUE(Node::eventually([&] {
      const Json now = devices();
      return node_.empty() && now.contains("swap") && now["swap"]["used"] == 0;
    })) << devices()
        << node_.ask({{"command", "ps"}});
    EXPECT_TRUE(node_.stop_cleanly()) << "processes were left behind";
  }

  void report() const {
    for (size_t i = 0; i < counts_.size(); ++i) std::printf("%u %s, ", counts_[i], kKinds[i].name);
    std::printf("%u of the workers at work; %u programs right, %u told why not\n", hit_at_work_, right_, told_);
    EXPECT_GT(hit_at_work_, 0u) << "nothing was disturbed";
    EXPECT_GT(right_, told_);
  }

  Node node_;
  bool gpu_;
  Arguments guilty_;
  std::mt19937 random_{setting("HEDDLE_STORM_SEED", 20264)};
  std::list<Job> jobs_;
  std::optional<pid_t> stopped_;
  std::array<unsigned, kKinds.size()> counts_{};
  unsigned hit_at_work_ = 0, right_ = 0, told_ = 0;
};

constexpr const char* kSurvives = "[durability]\nlevel = 'full'\n[dispatch]\npolicy = 'priority:hard'\n";

TEST(Storm, OnSoftwareDevicesThatShareTheirFaults) {
  HEDDLE_NEEDS_WORKLOADS();
  HEDDLE_NEEDS_PROGRAM("illegal_access");
  Storm storm(std::string("[daemon]\nwarm_workers = 1\n") + kSurvives +
              "[[device]]\npreset = 'P100'\ncount = 2\nmemory = '128M'\nslowdown = 0\ncopy_slowdown = 0\n"
              "shared_faults = true\n");
  storm.rage(setting("HEDDLE_STORM_EVENTS", kEvents));
}

#ifdef HEDDLE_TEST_DRIVER
// Everything is a GPU's but the driver, which is the tests' own (src/device/cuda/testing).
TEST(Storm, OnAGpu) {
  HEDDLE_NEEDS_WORKLOADS();
  HEDDLE_NEEDS_PROGRAM("illegal_access");
  ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
  Storm storm(kSurvives + Node::gpu_config(), true);
  ::unsetenv("HEDDLE_CUDA_LIBRARY");
  storm.rage(setting("HEDDLE_STORM_EVENTS", kEvents / 2));
}
#endif

}  // namespace
}  // namespace heddle::e2e
