// What a GPU's driver takes for a program: counted, and charged before the launch that makes it take it, against a
// heddled and workers in threads of this process.

#include "client/device/driver_charges.h"

#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing::program;
using ::testing::StartsWith;
using testing::the_heddled;
using Part = DriverCharges::Part;

const auto* const environment = ::testing::AddGlobalTestEnvironment(
    new testing::Environment({.devices = 1, .budget = 512 * kMiB, .kind = DeviceKind::kCuda}));

DeviceModel gpu() {
  DeviceModel model;
  model.kind = DeviceKind::kCuda;
  model.sms = 8, model.max_threads_per_sm = 2048;  // 16 MiB for each further KiB a thread
  return model;
}

TEST(DriverCharges, ASoftwareDeviceTakesNothing) {
  DeviceModel model = gpu();
  model.kind = DeviceKind::kSoftware;
  const DriverCharges charges(model);
  EXPECT_TRUE(charges.covers_local(512 << 10));
  EXPECT_EQ(charges.missing(Part::kHeap, 0, 64 * kMiB), 0u);
}

TEST(DriverCharges, LocalMemoryIsThatOfAllThreadsBeyondTheContexts) {
  DriverCharges charges(gpu());
  EXPECT_TRUE(charges.covers_local(1024));
  EXPECT_FALSE(charges.covers_local(1025));
  EXPECT_EQ(charges.local_bytes(800), 0u);
  EXPECT_EQ(charges.local_bytes(3072), 32 * kMiB);
  EXPECT_EQ(charges.missing(Part::kLocal, 0, charges.local_bytes(3072)), 32 * kMiB);
  charges.cover(Part::kLocal, 0, 32 * kMiB, 0x1000, 32 * kMiB);
  EXPECT_TRUE(charges.covers_local(3072));
  EXPECT_FALSE(charges.covers_local(3073));
  EXPECT_EQ(charges.missing(Part::kLocal, 0, charges.local_bytes(2048)), 0u) << "a smaller kernel needs no more";
  EXPECT_EQ(charges.missing(Part::kLocal, 0, charges.local_bytes(4096)), 16 * kMiB) << "a larger one what it adds";
}

TEST(DriverCharges, PartsAddUpAndSmallSumsAreNotCharged) {
  DriverCharges charges(gpu());
  EXPECT_EQ(charges.missing(Part::kStreams, 0, 5 * kMiB), 0u);
  charges.cover(Part::kStreams, 0, 5 * kMiB, 0, 0);
  EXPECT_EQ(charges.missing(Part::kVariables, 1, 4 * kMiB), 10 * kMiB) << "9 MiB, in whole segments";
  charges.cover(Part::kVariables, 1, 4 * kMiB, 0x1000, 10 * kMiB);
  EXPECT_EQ(charges.missing(Part::kVariables, 2, kMiB), 0u) << "fits what the segments were rounded up to";
  charges.cover(Part::kVariables, 2, kMiB, 0, 0);
  EXPECT_EQ(charges.missing(Part::kVariables, 3, kMiB), 2 * kMiB);
}

TEST(DriverCharges, WhatLapsedIsChargedAgainByWhateverLaunchIsNext) {
  DriverCharges charges(gpu());
  charges.cover(Part::kLocal, 0, 32 * kMiB, 0x1000, 32 * kMiB);
  EXPECT_EQ(charges.segments(), 1u);
  EXPECT_THAT(charges.lapse(), ElementsAre(0x1000));
  EXPECT_EQ(charges.segments(), 0u);
  EXPECT_FALSE(charges.covers_local(0));
  EXPECT_EQ(charges.missing(Part::kLocal, 0, charges.local_bytes(0)), 32 * kMiB);
  charges.cover(Part::kLocal, 0, 0, 0x1000, 32 * kMiB);
  EXPECT_TRUE(charges.covers_local(3072));
}

TEST(DriverCharges, AResetForgetsWhatWasNeeded) {
  DriverCharges charges(gpu());
  charges.cover(Part::kLocal, 0, 32 * kMiB, 0x1000, 32 * kMiB);
  charges.forget();
  EXPECT_TRUE(charges.covers_local(1024));
  EXPECT_FALSE(charges.covers_local(1025));
  EXPECT_EQ(charges.missing(Part::kLocal, 0, 0), 0u);
}

// The shown device is a P100: 56 SMs of 2,048 threads; 4,096 bytes of each are 336 MiB more than a context has.
class ChargesTest : public ::testing::Test {
 protected:
  void SetUp() override { mark_ = the_heddled->log().size(); }
  void TearDown() override {
    the_heddled->allow_idle(false);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_TRUE(testing::FakeHeddled::eventually([] { return the_heddled->serves_nobody(); }));
    cudaGetLastError();
  }
  static cudaError_t launch(const char* kernel) {
    return cudaLaunchKernel(kernel, {1, 1, 1}, {32, 1, 1}, nullptr, 0, nullptr);
  }
  static void* allocate() {
    void* buffer = nullptr;
    EXPECT_EQ(cudaMalloc(&buffer, 4 * kMiB), cudaSuccess);
    return buffer;
  }
  // Entries since the test began, without their numbers: "driver", "begin".
  std::vector<std::string> seen() const {
    const auto log = the_heddled->log();
    std::vector<std::string> words;
    for (size_t i = mark_; i < log.size(); ++i) words.push_back(log[i].substr(0, log[i].find(' ')));
    return words;
  }
  size_t count(const std::string& word) const {
    const auto words = seen();
    return static_cast<size_t>(std::count(words.begin(), words.end(), word));
  }

  size_t mark_ = 0;
};

TEST_F(ChargesTest, ChargesLocalMemoryBeforeTheLaunchAndOnce) {
  void* const buffer = allocate();
  ASSERT_EQ(launch(&program().deep), cudaSuccess);
  ASSERT_EQ(launch(&program().deep), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count("driver"), 1u);
  EXPECT_THAT(the_heddled->log(), Contains(::testing::EndsWith(" 352321536")));
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

TEST_F(ChargesTest, ASmallKernelIsNotCharged) {
  void* const buffer = allocate();
  ASSERT_EQ(testing::launch_add(buffer, 1, buffer), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count("driver"), 0u);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

TEST_F(ChargesTest, TheTaskEndsWithTheLastBufferAllTheSame) {
  void* const buffer = allocate();
  ASSERT_EQ(launch(&program().deep), cudaSuccess);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  EXPECT_TRUE(testing::FakeHeddled::eventually([&] { return count("end") == 1; }));
  EXPECT_EQ(count("free"), 2u) << "the buffer and what counted the rest";
  void* const again = allocate();
  ASSERT_EQ(launch(&program().deep), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count("driver"), 2u) << "the next worker has nothing of it yet";
  EXPECT_EQ(cudaFree(again), cudaSuccess);
}

TEST_F(ChargesTest, AStackIsChargedAgainByTheNextTasksFirstLaunch) {
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 2048), cudaSuccess);
  for (size_t task = 1; task <= 2; ++task) {
    void* const buffer = allocate();
    ASSERT_EQ(testing::launch_add(buffer, 1, buffer), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(count("driver"), task);
    EXPECT_EQ(cudaFree(buffer), cudaSuccess);
    EXPECT_TRUE(testing::FakeHeddled::eventually([&] { return count("end") == task; }));
  }
}

TEST_F(ChargesTest, AStackThatTheBudgetDoesNotAllowIsNotSet) {
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 64 << 10), cudaErrorMemoryAllocation);
  size_t bytes = 0;
  EXPECT_EQ(cudaDeviceGetLimit(&bytes, cudaLimitStackSize), cudaSuccess);
  EXPECT_EQ(bytes, 1024u);
}

TEST_F(ChargesTest, StaysChargedWhileTheTaskRestsAndGoesWithTheNextOne) {
  void* buffer = allocate();  // opens the device, of which heddled allows it
  the_heddled->allow_idle(true);
  ASSERT_EQ(launch(&program().deep), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  the_heddled->reclaim();
  EXPECT_TRUE(testing::FakeHeddled::eventually([&] { return count("ended") == 1; }));
  buffer = allocate();
  ASSERT_EQ(launch(&program().deep), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count("driver"), 1u) << "heddled knows it still";
  EXPECT_EQ(count("begin"), 2u);
  the_heddled->allow_idle(false);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

TEST_F(ChargesTest, WhatTheBudgetDoesNotAllowFailsTheLaunchAlone) {
  void* const buffer = allocate();
  EXPECT_EQ(launch(&program().deeper), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(launch(&program().deep), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

TEST_F(ChargesTest, ChargesALargerStackAndManyStreams) {
  void* const buffer = allocate();
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 2048), cudaSuccess);
  EXPECT_EQ(count("driver"), 0u) << "declared with the task";
  ASSERT_EQ(testing::launch_add(buffer, 1, buffer), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(count("driver"), 1u);
  std::vector<cudaStream_t> streams(16);
  for (cudaStream_t& stream : streams) ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(testing::launch_add(buffer, 1, buffer), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_GT(count("driver"), 1u);
  for (const cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
