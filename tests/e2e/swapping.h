#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "steps.h"

namespace heddle::e2e {

inline std::string config(const char* memory, int devices = 1) {
  return "[daemon]\nwarm_workers = 1\n[[device]]\npreset = 'P100'\ncount = " + std::to_string(devices) +
         "\nmemory = '" + memory + "'\nslowdown = 0\ncopy_slowdown = 0\n";
}

// A node, and the job of the only program there, or of the first: to be suspended and swapped.
class Swapping : public testing::Test {
 protected:
  void set_up(const std::string& config) {
    node_ = std::make_unique<Node>(config);
    ASSERT_TRUE(node_->ready()) << node_->why();
  }
  // The session of the first job.
  Json session() {
    const Json ps = node_->ask({{"command", "ps"}});
    return ps.contains("sessions") && !ps["sessions"].empty() ? ps["sessions"][0] : Json();
  }
  Json task() {
    const Json now = session();
    return now.is_object() && !now["tasks"].empty() ? now["tasks"][0] : Json::object();
  }
  std::string state() { return task().value("state", ""); }
  bool reaches(const std::string& wanted) {
    return Node::eventually([&] { return state() == wanted; });
  }
  std::string job() { return std::to_string(session()["job"].get<uint64_t>()); }
  void expect_works(const Arguments& command) {
    const Finished finished = node_->heddle(command);
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node_->log();
  }
  uint64_t used(size_t device = 0) { return node_->ask({{"command", "devices"}})["devices"][device]["used"]; }
  uint64_t swap_used() { return node_->ask({{"command", "devices"}})["swap"]["used"]; }
  void expect_right(Process& program, const std::string& wanted) {
    const Finished finished = program.wait();
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node_->log();
    EXPECT_EQ(finished.out, wanted) << finished.err;
  }
  void expect_nothing_left() {
    EXPECT_TRUE(Node::eventually([&] { return node_->empty(); })) << node_->ask({{"command", "ps"}});
    EXPECT_EQ(swap_used(), 0u);
    EXPECT_TRUE(node_->stop_cleanly());
  }

  std::unique_ptr<Node> node_;
};

}  // namespace heddle::e2e
