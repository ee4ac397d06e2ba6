// Workers that are held back for a while: real processes, a clock that stands still.

#include "daemon/held_back.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "daemon/proc_file.h"
#include "daemon/spawn.h"
#include "daemon/testing/books.h"

namespace heddle::daemon {
namespace {

class HeldBackTest : public ::testing::Test, protected testing::Books {
 protected:
  HeldBackTest() : Books("held_back_test") {
    clock_.advance(std::chrono::seconds(100));
    registry_.devices.emplace_back().id = kDevice;
  }
  ~HeldBackTest() override {
    for (auto& [id, session] : registry_.sessions) session.devices[0].worker = nullptr;
    for (const auto& [id, worker] : registry_.workers) {
      kill_process(worker.process, SIGKILL);
      (void)reap(worker.process);
    }
  }
  // One that serves a program, which is apart where its worker is outside of MPS, and does nothing.
  Worker& worker(Worker::Kind kind = Worker::Kind::kOutsideMps) {
    SpawnOptions options;
    options.program = "/bin/sleep";
    options.arguments = {"1000"};
    auto child = spawn(options);
    EXPECT_TRUE(child);
    const WorkerId id{registry_.workers.size() + 1};
    Worker& worker = registry_.workers[id];
    worker.id = id;
    worker.device = kDevice;
    worker.kind = kind;
    worker.state = Worker::State::kBound;
    worker.session = SessionId{id.value};
    worker.pid = child->pid;
    worker.process = std::move(child->pidfd);
    Session& session = registry_.sessions[worker.session];
    session.devices.resize(1);
    session.devices[0].apart = worker.outside_mps();
    session.devices[0].worker = &worker;
    return worker;
  }
  // A signal takes a moment.
  static bool becomes(const Worker& worker, bool stopped) {
    for (int look = 0; look < 2000 && is_stopped(worker.pid) != stopped; ++look) ::usleep(1000);
    return is_stopped(worker.pid) == stopped;
  }
  void pass(Duration by) {
    clock_.advance(by);
    ASSERT_TRUE(loop_->run_once(Duration{}));
  }

  static constexpr DeviceId kDevice{0};
  HeldBack held_back_{shared_};
};

TEST_F(HeldBackTest, WhoComputesOutsideOfMpsIsAsLongAsSomethingIsAwaited) {
  const Worker &outside = worker(), &client = worker(Worker::Kind::kWhole);
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(outside, true));
  EXPECT_FALSE(is_stopped(client.pid));
  held_back_.look(kDevice, true);
  held_back_.look(kDevice, false);
  EXPECT_TRUE(becomes(outside, false));
}

TEST_F(HeldBackTest, WhoIsTriedIsNotAndLaterOnlyForWhoHasNoWorker) {
  const Worker &tried = worker(), &other = worker();
  DeviceState& device = registry_.devices[0];
  registry_.sessions[tried.session].devices[0].apart = false;
  device.on_trial.insert({tried.session, 0});
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(other, true));
  EXPECT_FALSE(tried.held_back);
  device.tried.swap(device.on_trial);
  held_back_.look(kDevice, true);
  EXPECT_FALSE(tried.held_back);
  device.wanting.emplace_back(SessionId{9}, 0);
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(tried, true));
}

TEST_F(HeldBackTest, UntilTheTrialsEndThatBeginSoon) {
  const Worker& outside = worker();
  DeviceState& device = registry_.devices[0];
  device.last_shared_fault = clock_.now();
  device.on_trial.emplace(SessionId{9}, 0);
  held_back_.look(kDevice, false);
  EXPECT_TRUE(outside.held_back);
  device.on_trial.clear();
  held_back_.look(kDevice, false);
  EXPECT_FALSE(outside.held_back);
}

// The program was served outside of MPS because MPS was not back: it has waited already.
TEST_F(HeldBackTest, WhoHasItsWorkerThereOnlyForAWhileIsNot) {
  const Worker& served = worker();
  registry_.sessions[served.session].devices[0].apart = false;
  registry_.devices[0].wanting.emplace_back(SessionId{9}, 0);
  held_back_.look(kDevice, true);
  EXPECT_FALSE(served.held_back);
}

TEST_F(HeldBackTest, WhoComesLaterIs) {
  const Worker& first = worker();
  held_back_.look(kDevice, true);
  const Worker& later = worker();
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(later, true));
  held_back_.look(kDevice, false);
  EXPECT_TRUE(becomes(first, false));
  EXPECT_TRUE(becomes(later, false));
}

TEST_F(HeldBackTest, ForASecondAtMostAndAsLongNotAgain) {
  const Worker& outside = worker();
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(outside, true));
  pass(HeldBack::kHeldLongest);
  EXPECT_TRUE(becomes(outside, false));
  pass(HeldBack::kHeldLongest / 2);
  held_back_.look(kDevice, true);
  EXPECT_FALSE(outside.held_back);
  pass(HeldBack::kHeldLongest / 2);
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(outside, true));
}

TEST_F(HeldBackTest, ItsTimeBeginsWithTheFirstThatIs) {
  held_back_.look(kDevice, true);
  pass(HeldBack::kHeldLongest);
  const Worker& outside = worker();
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(outside, true));
}

// terminations.h stops it to look at it, and may not find that it has gone on.
TEST_F(HeldBackTest, OneThatIsToBeTerminatedIsLeftToThat) {
  Worker& outside = worker();
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(outside, true));
  outside.terminating = true;
  held_back_.look(kDevice, false);
  EXPECT_FALSE(outside.held_back);
  ::usleep(20'000);
  EXPECT_TRUE(is_stopped(outside.pid));
}

TEST_F(HeldBackTest, AtTheEndNobodyStays) {
  const Worker& outside = worker();
  held_back_.look(kDevice, true);
  EXPECT_TRUE(becomes(outside, true));
  held_back_.stop();
  EXPECT_TRUE(becomes(outside, false));
  held_back_.look(kDevice, true);
  EXPECT_FALSE(outside.held_back);
}

TEST_F(HeldBackTest, NobodyIsWhereALeaseWouldComeBackTooLate) {
  const Worker& outside = worker();
  shared_.config.dispatch.return_limit = HeldBack::kHeldLongest;
  held_back_.look(kDevice, true);
  EXPECT_FALSE(outside.held_back);
}

// Programs that wait have nothing to do with others' contexts but behind a fault.
TEST_F(HeldBackTest, ForWhoWaitsOnlyBehindAFault) {
  const Worker& outside = worker();
  DeviceState& device = registry_.devices[0];
  device.wanting.emplace_back(SessionId{9}, 0);
  held_back_.look(kDevice, false);
  EXPECT_FALSE(outside.held_back);
  device.last_shared_fault = clock_.now();
  held_back_.look(kDevice, false);
  EXPECT_TRUE(outside.held_back);
  device.wanting.clear();
  held_back_.look(kDevice, false);
  EXPECT_FALSE(outside.held_back);
}

}  // namespace
}  // namespace heddle::daemon
