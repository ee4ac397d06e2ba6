#pragma once

// Programs that wait between their steps, so that a test can do something to them there.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "node.h"

namespace heddle::e2e {

inline constexpr int kSteps = 4;

inline std::string program(const std::string& name) {
  return std::string(HEDDLE_E2E_PROGRAMS) + "/" + name;
}

#define HEDDLE_NEEDS_PROGRAM(name) \
  if (!std::filesystem::exists(program(name))) GTEST_SKIP() << name << " was not built on this machine"

// A program that waits for files before each of its steps.
class Steps {
 public:
  explicit Steps(Node& node, Arguments more = {}, int count = kSteps)
      : node_(node), directory_(node.directory() + "/steps-XXXXXX"), more_(std::move(more)), count_(count) {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  ~Steps() { std::filesystem::remove_all(directory_); }

  Process spawn(const std::string& name) { return node_.spawn_run(command(name)); }
  // What it prints when nobody disturbs it.
  std::string undisturbed(const std::string& name) {
    go_on();
    const Finished finished = node_.run(command(name));
    for (int step = 1; step <= count_; ++step) std::filesystem::remove(directory_ + "/" + std::to_string(step));
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
    return finished.out;
  }
  void go_on() {
    for (int step = 1; step <= count_; ++step) go(step);
  }
  // The step waits at a pipe, until go() opens it.
  void waits_at_pipe(int step) { EXPECT_EQ(::mkfifo((directory_ + "/" + std::to_string(step)).c_str(), 0600), 0); }
  void go(int step) { std::ofstream(directory_ + "/" + std::to_string(step)).flush(); }
  // The program stands before the step.
  static bool begins(const Process& process, int step) {
    return Node::eventually([&] { return has_begun(process, step); });
  }
  // And everything before it is done and saved.
  bool reaches(const Process& process, int step) {
    return Node::eventually([&] { return has_begun(process, step) && task()["drained"] == true; });
  }
  Json task() {
    const Json ps = node_.ask({{"command", "ps"}});
    if (!ps.contains("sessions") || ps["sessions"].empty() || ps["sessions"][0]["tasks"].empty()) return {};
    return ps["sessions"][0]["tasks"][0];
  }
  pid_t worker() {
    const Json now = task();
    return now.contains("worker_pid") ? now["worker_pid"].get<pid_t>() : -1;
  }
  void kill_worker() {
    const pid_t victim = worker();
    ASSERT_GT(victim, 1) << task();
    ASSERT_EQ(::kill(victim, SIGKILL), 0);
  }

 private:
  static bool has_begun(const Process& process, int step) {
    return process.out().find("step " + std::to_string(step) + "\n") != std::string::npos;
  }
  Arguments command(const std::string& name) const {
    Arguments command{program(name), directory_, std::to_string(count_)};
    command.insert(command.end(), more_.begin(), more_.end());
    return command;
  }
  Node& node_;
  std::string directory_;
  Arguments more_;
  int count_;
};

}  // namespace heddle::e2e
