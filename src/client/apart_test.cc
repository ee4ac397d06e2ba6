// Tasks apart: a second device's worth of work behind one device of the program (apart.h).

#include <heddle/task.h>

#include <condition_variable>
#include <thread>

#include "client/runtime.h"
#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using testing::add_parameters;
using testing::launch_add;
using testing::program;
using testing::the_heddled;

const auto* const environment = ::testing::AddGlobalTestEnvironment(
    new testing::Environment({.devices = 1, .side_devices = 2, .budget = 64 * kMiB}));

constexpr uint64_t kLarge = 4 << 20;  // a buffer with a segment of its own

// Opened once, for all who wait.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  bool wait(std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, limit, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// What a test and the kernels of its launches share. The kernels hold it too: a sanitizer cannot follow the ring, by
// which a test knows that they are done.
struct Meeting {
  Gate gates[4];
  std::mutex mutex;
  std::vector<int> order;
};

// A task of one buffer and launches of `add`(buffer, number, buffer), as heddle cc writes it.
class OneTask {
 public:
  static constexpr uint64_t kPointers = 0b1101;  // the first and the third of three parameters

  explicit OneTask(uint32_t flags = HEDDLE_TASK_APART, uint64_t bytes = kLarge, uint64_t pointers = kPointers) {
    const heddle_buffer promised{bytes, 1};
    const heddle_launch largest{&program().add, {1, 1, 1}, {32, 1, 1}, 0, nullptr};
    const heddle_task task{sizeof task, flags, "test", 1, &promised, 1, &largest, &pointers};
    number_ = heddle_task_api()->begin(&task);
    inside([&] { allocated_ = cudaMalloc(&buffer, bytes); });
  }
  ~OneTask() {
    if (buffer) inside([&] { EXPECT_EQ(cudaFree(buffer), cudaSuccess); });
    heddle_task_api()->end(number_);
  }

  template <class Body>
  void inside(Body&& body) {
    heddle_task_api()->enter(number_);
    body();
    heddle_task_api()->leave();
  }
  void launch(int number) {
    inside([&] { EXPECT_EQ(launch_add(buffer, number, buffer), cudaSuccess); });
  }
  cudaError_t allocated() const { return allocated_; }
  uint32_t ring() const { return runtime().device_of(reinterpret_cast<uint64_t>(buffer))->index(); }

  void* buffer = nullptr;

 private:
  uint64_t number_;
  cudaError_t allocated_ = cudaErrorUnknown;
};

class ApartTest : public ::testing::Test {
 protected:
  void SetUp() override { mark_ = the_heddled->log().size(); }
  void TearDown() override {
    the_heddled->grant_apart(true);
    the_heddled->set_kernel({});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  size_t seen(const std::string& start) const {
    const auto log = the_heddled->log();
    return static_cast<size_t>(std::count_if(log.begin() + static_cast<std::ptrdiff_t>(mark_), log.end(),
                                             [&](const std::string& entry) { return entry.starts_with(start); }));
  }

  size_t mark_ = 0;
};

TEST_F(ApartTest, TheSecondTaskRunsOnASideDeviceOfTheSameDevice) {
  OneTask first, second;
  EXPECT_EQ(seen("apart 0 1"), 1u);
  EXPECT_EQ(first.ring(), 0u);
  EXPECT_EQ(second.ring(), 1u);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, second.buffer), cudaSuccess);
  EXPECT_EQ(attributes.device, 0);
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
}

TEST_F(ApartTest, AnEndedTasksSideDeviceIsTakenAgain) {
  for (int turn = 0; turn < 4; ++turn) {
    OneTask first, second;
    first.launch(1);
    second.launch(2);
    EXPECT_EQ(second.ring(), 1u);
  }
}

TEST_F(ApartTest, AThirdTaskTakesAnotherSideDeviceAndAFourthStaysAtHome) {
  OneTask first, second, third, fourth;
  EXPECT_NE(second.ring(), third.ring());
  EXPECT_NE(third.ring(), 0u);
  EXPECT_EQ(fourth.ring(), 0u);
}

TEST_F(ApartTest, WhatHeddledDeclinesLeavesNothingBehind) {
  { OneTask first, second; }
  const protocol::TaskTotals& side = runtime().opened(1)->ring().header().task_totals;
  const protocol::TaskTotals& home = runtime().opened(0)->ring().header().task_totals;
  const uint64_t on_side = side.declared, tasks_on_side = side.tasks, at_home = home.declared;
  the_heddled->grant_apart(false);
  mark_ = the_heddled->log().size();
  {
    OneTask first, second;
    EXPECT_EQ(seen("alone 0 1"), 1u);
    EXPECT_EQ(seen("begin"), 0u);
    EXPECT_EQ(first.ring(), 0u);
    EXPECT_EQ(second.ring(), 0u);
    first.launch(1);
    second.launch(2);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(seen("begin"), 1u);
  }
  EXPECT_EQ(home.declared - at_home, 2 * kLarge);
  EXPECT_EQ(side.declared, on_side);
  EXPECT_EQ(side.tasks, tasks_on_side);
}

TEST_F(ApartTest, WhatIsNotProvedStaysAtHome) {
  OneTask first;
  OneTask unproved(0);                                               // by the compiler
  OneTask other(HEDDLE_TASK_APART, kLarge, OneTask::kPointers * 2);  // of a kernel with more parameters
  EXPECT_EQ(unproved.ring(), 0u);
  EXPECT_EQ(other.ring(), 0u);
  EXPECT_EQ(seen("apart"), 0u);
}

TEST_F(ApartTest, BuffersOfSideDevicesCountAsTheDevices) {
  OneTask first(HEDDLE_TASK_APART, 40 * kMiB), second(HEDDLE_TASK_APART, 40 * kMiB);
  EXPECT_EQ(first.allocated(), cudaSuccess);
  EXPECT_EQ(second.allocated(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  OneTask third(HEDDLE_TASK_APART, 8 * kMiB);
  EXPECT_NE(third.ring(), 0u);
  size_t available = 0, total = 0;
  EXPECT_EQ(cudaMemGetInfo(&available, &total), cudaSuccess);
  EXPECT_EQ(total - available, 48 * kMiB);
}

// Both kernels meet: neither waits for the other's task.
TEST_F(ApartTest, TasksApartRunAtOnce) {
  OneTask first, second;
  const auto meeting = std::make_shared<Meeting>();
  the_heddled->set_kernel([meeting](const protocol::LaunchRecord&, const char* parameters) {
    const int number = add_parameters(parameters).number;
    meeting->gates[number].open();
    EXPECT_TRUE(meeting->gates[1 - number].wait());
  });
  first.launch(0);
  second.launch(1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// What the program does beside its tasks keeps its place: behind the side device's kernel, and the side device's next
// behind it.
TEST_F(ApartTest, OrderHoldsTowardsEverythingElse) {
  OneTask first, second;
  void* outside = nullptr;
  ASSERT_EQ(cudaMalloc(&outside, kLarge), cudaSuccess);
  const auto meeting = std::make_shared<Meeting>();
  the_heddled->set_kernel([meeting](const protocol::LaunchRecord&, const char* parameters) {
    const int number = add_parameters(parameters).number;
    meeting->gates[number].open();
    // Time enough for one that does not wait to come first.
    EXPECT_FALSE(number < 3 && meeting->gates[number + 1].wait(std::chrono::milliseconds(50)));
    const std::lock_guard lock(meeting->mutex);
    meeting->order.push_back(number);
  });
  second.launch(0);
  ASSERT_EQ(launch_add(outside, 1, outside), cudaSuccess);
  second.launch(2);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(launch_add(outside, 3, outside, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  {
    const std::lock_guard lock(meeting->mutex);
    EXPECT_EQ(meeting->order, (std::vector{0, 1, 2, 3}));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(outside), cudaSuccess);
}

TEST_F(ApartTest, AnEventIsReachedBehindTheSideDevicesWork) {
  OneTask first, second;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const auto meeting = std::make_shared<Meeting>();
  the_heddled->set_kernel(
      [meeting](const protocol::LaunchRecord&, const char*) { EXPECT_TRUE(meeting->gates[0].wait()); });
  second.launch(1);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  meeting->gates[0].open();
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_TRUE(runtime().opened(1)->ring().stream_reached(0, runtime().opened(1)->ring().last_work().sequence));
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(ApartTest, OtherDevicesOfAThreadAreNotMistaken) {
  OneTask first, second;
  std::thread([&] {
    void* mine = nullptr;
    EXPECT_EQ(cudaMalloc(&mine, kLarge), cudaSuccess);
    EXPECT_EQ(runtime().device_of(reinterpret_cast<uint64_t>(mine))->index(), 0u);
    EXPECT_EQ(cudaFree(mine), cudaSuccess);
  }).join();
}

TEST_F(ApartTest, WhoEndsInsideIsOutsideAgain) {
  OneTask first, second;
  const heddle_task task{sizeof task, HEDDLE_TASK_APART, "test", 0, nullptr, 0, nullptr, &OneTask::kPointers};
  const uint64_t third = heddle_task_api()->begin(&task);
  heddle_task_api()->enter(third);
  heddle_task_api()->end(third);
  EXPECT_EQ(thread_place().inside, nullptr);
}

// The last, for the session does not outlive it.
TEST(ApartFault, OnASideDeviceIsTheDevices) {
  static auto* const first = new OneTask;  // nothing can be freed after a fault
  static auto* const second = new OneTask;
  ::testing::internal::CaptureStderr();
  the_heddled->fault_next(cudaErrorIllegalAddress, "the side device's");
  second->launch(1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(launch_add(first->buffer, 1, first->buffer), cudaErrorIllegalAddress);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, kLarge), cudaErrorIllegalAddress);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "heddle: the side device's\n");
}

}  // namespace
}  // namespace heddle::client
