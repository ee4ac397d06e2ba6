// Declared tasks and early frees, as a program compiled by heddle cc calls them (include/heddle/task.h).

#include <heddle/task.h>

#include <array>
#include <thread>

#include "client/runtime.h"
#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using ::testing::ElementsAre;
using testing::launch_add;
using testing::program;
using testing::the_heddled;

const int eager = ::setenv("HEDDLE_EAGER_FREE", "1", 1);
const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 1, .budget = 64 * kMiB}));

constexpr uint64_t kLarge = 4 << 20;  // a buffer with a segment of its own

class TaskTest : public ::testing::Test {
 protected:
  void SetUp() override { mark_ = the_heddled->log().size(); }
  // Every test frees what it has, so every task that it began ends.
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_TRUE(eventually([&] { return seen("begin").size() == seen("end").size(); }));
  }

  // The heddled and its worker are threads: what they note comes a little later.
  template <class Holds>
  static bool eventually(Holds&& holds) {
    for (int i = 0; i < 5000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return holds();
  }

  static uint64_t begin(const std::vector<heddle_buffer>& buffers, const std::vector<heddle_launch>& launches = {}) {
    const heddle_task task{sizeof(heddle_task), 0, "test", buffers.size(), buffers.data(), launches.size(),
                           launches.data()};
    return heddle_task_api()->begin(&task);
  }
  static void* allocate(uint64_t bytes) {
    void* buffer = nullptr;
    EXPECT_EQ(cudaMalloc(&buffer, bytes), cudaSuccess);
    return buffer;
  }
  // Entries since the test began that start so.
  std::vector<std::string> seen(const std::string& start) const {
    std::vector<std::string> found;
    const auto log = the_heddled->log();
    for (size_t i = mark_; i < log.size(); ++i) {
      if (log[i].starts_with(start)) found.push_back(log[i]);
    }
    return found;
  }
  // Bytes of the segments that were declared before the task began.
  uint64_t declared_with_task() const {
    uint64_t bytes = 0;
    const auto log = the_heddled->log();
    for (size_t i = mark_; i < log.size() && !log[i].starts_with("begin"); ++i) {
      if (log[i].starts_with("segment")) bytes += std::stoull(log[i].substr(log[i].rfind(' ')));
    }
    return bytes;
  }

  // Tasks, declared, used and beside bytes, extensions: as heddled reads them.
  struct Totals : std::array<uint64_t, 5> {
    Totals operator-(const Totals& before) const {
      Totals difference;
      for (size_t i = 0; i < size(); ++i) difference[i] = (*this)[i] - before[i];
      return difference;
    }
  };
  static Totals totals() {
    const protocol::TaskTotals& now = (*runtime().device(0))->ring().header().task_totals;
    return {{now.tasks, now.declared, now.used, now.beside, now.extensions}};
  }

  size_t mark_ = 0;
};

TEST_F(TaskTest, MemoryThatComesLaterIsAskedForWithTheTask) {
  const uint64_t task = begin({{kLarge, 1}, {2 * kLarge, 2}});
  EXPECT_NE(task, 0u);
  void* first = allocate(kLarge);
  ASSERT_EQ(launch_add(first, 1, first), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(declared_with_task(), 5 * kLarge);
  void* second = allocate(2 * kLarge);
  void* third = allocate(2 * kLarge);
  EXPECT_NE(second, third);
  ASSERT_EQ(launch_add(second, 1, third), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen("segment").size(), 3u);
  for (void* buffer : {first, second, third}) EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  heddle_task_api()->end(task);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen("begin").size(), 1u);
}

TEST_F(TaskTest, AProbeThatPromisedTooLittleExtends) {
  const Totals before = totals();
  const uint64_t task = begin({{kLarge, 1}});
  void* first = allocate(kLarge);
  ASSERT_EQ(launch_add(first, 1, first), cudaSuccess);
  void* second = allocate(3 * kLarge);
  ASSERT_EQ(launch_add(second, 1, second), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(declared_with_task(), kLarge);
  EXPECT_EQ(seen("segment").size(), 2u);
  EXPECT_THAT(totals() - before, ElementsAre(1, kLarge, kLarge, 3 * kLarge, 1));
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  heddle_task_api()->end(task);
}

TEST_F(TaskTest, WhatWasPromisedAndNotTakenGoesBackAtTheEnd) {
  const uint64_t task = begin({{kLarge, 1}, {8 * kLarge, 1}});
  void* buffer = allocate(kLarge);
  ASSERT_EQ(launch_add(buffer, 1, buffer), cudaSuccess);
  heddle_task_api()->end(task);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(eventually([&] { return seen("free").size() == 1; }));
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

TEST_F(TaskTest, WhatWillNotBeTakenGoesBackBehindTheLastAllocation) {
  const uint64_t task = begin({{kLarge, 1}, {8 * kLarge, 1}});
  void* buffer = allocate(kLarge);
  ASSERT_EQ(launch_add(buffer, 1, buffer), cudaSuccess);
  heddle_task_api()->allocated(task);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(eventually([&] { return seen("free").size() == 1; }));
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  heddle_task_api()->allocated(task);
  heddle_task_api()->end(task);
  heddle_task_api()->allocated(task);
}

TEST_F(TaskTest, WhatWillNotBeTakenIsNotAskedForAtAllBeforeTheFirstLaunch) {
  const uint64_t task = begin({{kLarge, 1}, {8 * kLarge, 1}});
  void* buffer = allocate(kLarge);
  ASSERT_EQ(cudaMemset(buffer, 0, kLarge), cudaSuccess);
  heddle_task_api()->allocated(task);
  ASSERT_EQ(launch_add(buffer, 1, buffer), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(declared_with_task(), kLarge);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  heddle_task_api()->end(task);
}

TEST_F(TaskTest, APromiseOverTheBudgetTakesNothingFromTheProgram) {
  const uint64_t task = begin({{60 * kMiB, 1}, {60 * kMiB, 1}});
  void* buffer = allocate(60 * kMiB);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  heddle_task_api()->end(task);
  buffer = allocate(60 * kMiB);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

TEST_F(TaskTest, TheLargestLaunchIsAnnouncedAtTheFirst) {
  const heddle_launch large{&program().add, {16, 2, 1}, {32, 1, 1}, 0, nullptr};
  const heddle_launch small{&program().add, {2, 1, 1}, {32, 1, 1}, 0, nullptr};
  const uint64_t task = begin({{kLarge, 1}}, {small, large});
  void* buffer = allocate(kLarge);
  ASSERT_EQ(launch_add(buffer, 1, buffer, nullptr, 2), cudaSuccess);
  ASSERT_EQ(launch_add(buffer, 1, buffer, nullptr, 32), cudaSuccess);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  heddle_task_api()->end(task);
  const auto begun = seen("begin");
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_NE(begun[0].find("blocks 32"), std::string::npos) << begun[0];
  EXPECT_EQ(seen("need").size(), 0u);
}

TEST_F(TaskTest, AnEarlyFreeGivesBackBehindTheWorkAndTheProgramsFreeIsQuiet) {
  void* first = allocate(kLarge);
  void* second = allocate(kLarge);
  ASSERT_EQ(launch_add(first, 1, second), cudaSuccess);
  heddle_task_api()->free_early(second);
  ASSERT_EQ(launch_add(first, 1, first), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(eventually([&] { return seen("free").size() == 1; }));
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(first), cudaSuccess);
}

TEST_F(TaskTest, EarlyFreesOfNothingDoNothing) {
  heddle_task_api()->free_early(nullptr);
  void* buffer = allocate(kLarge);
  heddle_task_api()->free_early(static_cast<char*>(buffer) + 8);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  heddle_task_api()->end(0);
  heddle_task_api()->end(12345);
}

}  // namespace
}  // namespace heddle::client
