#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "conformance_test.h"
#include "software_target.h"

// Software devices that several processes share, and processes that are killed while they hold a part of one.
namespace heddle::conformance {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWave = 16;  // blocks of so many threads that the two SMs hold at once

DeviceModel two_sms() {
  DeviceModel model = *device_preset("V100");
  model.sms = 2;
  model.slowdown = 50;
  return model;
}

std::unique_ptr<Target> concurrent() {
  return software_target(two_sms());
}
std::unique_ptr<Target> time_sliced() {
  DeviceModel model = two_sms();
  model.sharing = Sharing::kTimeSliced;
  return software_target(model);
}

class SharingTest : public ConformanceTest {
 protected:
  // Starts a process that fills the device with blocks that never end. Without a context here: only a process of one
  // thread may fork.
  void start_hog() {
    close();
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    hog_ = fork();
    if (hog_ == 0) be_hog(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
    reopen();
  }
  void kill_hog() {
    ::kill(hog_, SIGKILL);
    waitpid(hog_, nullptr, 0);
    hog_ = -1;
  }
  void TearDown() override {
    if (hog_ > 0) kill_hog();
    ConformanceTest::TearDown();
  }

 private:
  [[noreturn]] void be_hog(int ready) {
    reopen();
    uint64_t memory = map(4096);
    // One block more than fits: all wait for it.
    launch(0, "meet", {kWave + 1}, {kThreads}, Parameters(memory, memory + 64));
    auto* arrived = reinterpret_cast<uint32_t*>(memory);
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < kWave) usleep(1000);
    if (::write(ready, "!", 1) != 1) _exit(1);
    for (;;) pause();
  }

  pid_t hog_ = -1;
};
INSTANTIATE_TEST_SUITE_P(On, SharingTest,
                         testing::Values(TargetKind{"ConcurrentDevice", concurrent},
                                         TargetKind{"TimeSlicedDevice", time_sliced}),
                         target_name);

TEST_P(SharingTest, DeviceOfAKilledProcessIsFreeAgain) {
  for (int round = 0; round < 5; ++round) {
    start_hog();
    auto waiting = launch(0, "work", {kWave}, {kThreads}, Parameters(map(kWave * kThreads * 4), 100));
    kill_hog();
    EXPECT_EQ(wait_for(waiting).cuda_error, 0u);
  }
}

class FullDeviceTest : public SharingTest {};
INSTANTIATE_TEST_SUITE_P(On, FullDeviceTest, testing::Values(TargetKind{"ConcurrentDevice", concurrent}), target_name);

TEST_P(FullDeviceTest, BlocksWaitWhileAnotherProcessHoldsAllSlots) {
  start_hog();
  auto waiting = launch(0, "work", {1}, {kThreads}, Parameters(map(kThreads * 4), 100));
  ASSERT_TRUE(context().create_stream(1, true, 0));
  auto before = wait_for(mark(1));
  kill_hog();
  auto done = wait_for(waiting);
  EXPECT_EQ(done.cuda_error, 0u);
  EXPECT_GE(done.started, before.ended);
}

class TimeSlicedDeviceTest : public SharingTest {};
INSTANTIATE_TEST_SUITE_P(On, TimeSlicedDeviceTest, testing::Values(TargetKind{"TimeSlicedDevice", time_sliced}),
                         target_name);

TEST_P(TimeSlicedDeviceTest, EndlessKernelOfAnotherProcessGivesWay) {
  start_hog();
  EXPECT_EQ(wait_for(launch(0, "work", {kWave}, {kThreads}, Parameters(map(kWave * kThreads * 4), 100))).cuda_error,
            0u);
}

}  // namespace
}  // namespace heddle::conformance
