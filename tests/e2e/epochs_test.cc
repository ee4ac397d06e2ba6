// Workers are killed in the middle of their work, again and again, with [durability] level = "full": whatever of CUDA a
// program uses in what is run again, it prints what it prints undisturbed.

#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <thread>

#include "steps.h"
#include "told.h"

namespace heddle::e2e {
namespace {

constexpr int kRounds = 3, kMostKills = 4;  // of a round; a fifth at the same place would be one too many

struct Case {
  const char* name;
  Arguments command;  // a program of tests/e2e/programs, or "workloads/" and one of these
  const char* slowdown;
  bool may_lose = false;  // what it has cannot be run again at times, and that is told (kernels beside host functions)
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.name;
}

// Of what each has in an epoch: docs/revocation.md, "Work that is run again".
const Case kCases[] = {
    {"graphs_with_allocations", {"graph_memory"}, "10000"},
    {"graphs_of_two_streams", {"graphs"}, "20000", true},
    {"pools", {"pools"}, "20000"},
    {"small_buffers", {"small_buffers", "300"}, "500"},
    {"textures_and_surfaces", {"textures"}, "2000"},
    {"growth", {"growing"}, "3000"},
    {"many_frees", {"many_buffers", "40", "256"}, "5000"},
    {"cooperative_launches", {"grid_sync"}, "50"},
    {"libraries", {"libraries_smoke"}, "20000", true},
    {"atomics", {"workloads/histogram"}, "2000"},
    {"updates_in_place", {"workloads/srad_v2"}, "1000"},
    {"training", {"workloads/nn", "--mode", "train"}, "200"},
    {"pieces_of_100_MiB", {"workloads/vecadd", "--size", "9000000", "--check", "sample"}, "200"},
};

class Epochs : public testing::TestWithParam<Case> {
 protected:
  Arguments command() const {
    Arguments command = GetParam().command;
    const bool is_workload = command[0].rfind("workloads/", 0) == 0;
    command[0] = is_workload ? workload(command[0].substr(std::string("workloads/").size())) : program(command[0]);
    return command;
  }
  static std::string config(const std::string& slowdown) {
    return "[daemon]\nwarm_workers = 2\n[durability]\nlevel = 'full'\n[[device]]\npreset = 'P100'\nmemory = '256M'\n"
           "slowdown = " +
           slowdown + "\ncopy_slowdown = 10\n";
  }
  // The worker that has work under way; -1 where none has.
  static pid_t at_work(Node& node) {
    const Json sessions = node.ask({{"command", "ps"}}).value("sessions", Json::array());
    if (sessions.empty() || sessions[0]["tasks"].empty() || sessions[0]["usage"]["busy_now"] != true) return -1;
    return sessions[0]["tasks"][0].value("worker_pid", -1);
  }
};

TEST_P(Epochs, ProgramsPrintWhatTheyPrintUndisturbed) {
  HEDDLE_NEEDS_WORKLOADS();
  if (!std::filesystem::exists(command()[0])) GTEST_SKIP() << command()[0] << " was not built on this machine";
  Node node(config(GetParam().slowdown));
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished undisturbed = node.run(command());
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.out << undisturbed.err;
  std::mt19937 random(20265);
  int kills = 0, right = 0;
  std::string told;
  for (int round = 0; round < kRounds; ++round) {
    Process job = node.spawn_run(command());
    for (int left = kMostKills; left > 0 && job.running();) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 150));
      const pid_t worker = at_work(node);
      if (worker <= 1 || ::kill(worker, SIGKILL) != 0) continue;
      ++kills;
      --left;
    }
    const Finished finished = job.wait();
    if (finished.status != 0) {
      EXPECT_TRUE(is_told_why(finished)) << finished.status << finished.out << finished.err << node.log();
      told = finished.err;
      continue;
    }
    EXPECT_EQ(finished.out, undisturbed.out) << finished.err << node.log();
    ++right;
  }
  EXPECT_GT(kills, 0) << "it was over before anybody was killed";
  EXPECT_TRUE(right > 0 || GetParam().may_lose) << told;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); })) << node.ask({{"command", "ps"}});
  std::printf("%d workers killed at work, %d of %d rounds right%s%s\n", kills, right, kRounds,
              told.empty() ? "" : "; told: ", told.c_str());
}

INSTANTIATE_TEST_SUITE_P(With, Epochs, testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace heddle::e2e
