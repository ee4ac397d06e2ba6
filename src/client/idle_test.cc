// Memory that the program has freed and that its worker keeps until somebody waits for it.

#include <heddle/task.h>

#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using testing::launch_add;
using testing::the_heddled;

const int eager = ::setenv("HEDDLE_EAGER_FREE", "1", 1);
const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 1, .budget = 64 * kMiB}));

constexpr uint64_t kLarge = 4 * kMiB;  // a buffer with a segment of its own

class IdleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    ASSERT_TRUE(the_heddled->eventually([] { return the_heddled->serves_nobody(); }));
    the_heddled->allow_idle(true);
    mark_ = the_heddled->log().size();
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }

  static void* allocate(uint64_t bytes) {
    void* buffer = nullptr;
    EXPECT_EQ(cudaMalloc(&buffer, bytes), cudaSuccess);
    return buffer;
  }
  // A buffer that the device has used.
  static void* used(uint64_t bytes) {
    void* const buffer = allocate(bytes);
    EXPECT_EQ(launch_add(buffer, 1, buffer), cudaSuccess);
    return buffer;
  }
  static void use_and_free(uint64_t bytes) { EXPECT_EQ(cudaFree(used(bytes)), cudaSuccess); }
  static uint64_t free_bytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  }
  // Entries since the test began that end so, and that start so.
  size_t count(const std::string& end) const {
    const auto log = the_heddled->log();
    return static_cast<size_t>(std::count_if(log.begin() + static_cast<std::ptrdiff_t>(mark_), log.end(),
                                             [&](const std::string& entry) { return entry.ends_with(end); }));
  }
  size_t seen(const std::string& start) const {
    const auto log = the_heddled->log();
    return static_cast<size_t>(std::count_if(log.begin() + static_cast<std::ptrdiff_t>(mark_), log.end(),
                                             [&](const std::string& entry) { return entry.starts_with(start); }));
  }

  size_t mark_ = 0;
};

// heddled itself has it leave its device, and nobody else looks into the ring.
TEST_F(IdleTest, WorkForATaskThatIsAwayIsToldOf) {
  void* const buffer = used(kLarge);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen("work waits"), 0u);
  the_heddled->say_away(true);
  ASSERT_EQ(launch_add(buffer, 1, buffer), cudaSuccess);
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("work waits 0") == 1; })) << seen("work waits");
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen("work waits"), 1u);
  the_heddled->say_away(false);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  EXPECT_EQ(seen("work waits"), 1u);
}

TEST_F(IdleTest, ALoopThatAllocatesAndFreesIsOneTaskAndNeedsNobody) {
  use_and_free(kLarge);
  const size_t first = the_heddled->log().size();
  for (int i = 0; i < 20; ++i) {
    void *large = allocate(kLarge), *small = allocate(100);
    ASSERT_EQ(launch_add(large, 1, small), cudaSuccess);
    ASSERT_EQ(cudaFree(small), cudaSuccess);
    ASSERT_EQ(cudaFree(large), cudaSuccess);
  }
  EXPECT_EQ(the_heddled->log().size() - first, 1u) << "the small buffers' segment";
  EXPECT_EQ(seen("begin"), 1u);
  EXPECT_EQ(seen("segment"), 2u);
  EXPECT_EQ(seen("free") + seen("end"), 0u);
}

TEST_F(IdleTest, WhileSomebodyWaitsEveryFreeGoesBackAtOnce) {
  the_heddled->allow_idle(false);
  for (int i = 0; i < 3; ++i) use_and_free(kLarge);
  EXPECT_EQ(seen("begin"), 3u);
  EXPECT_EQ(seen("segment"), 3u);
}

TEST_F(IdleTest, WhatIsIdleGoesBackWithTheNextFreeWhenSomebodyWaits) {
  void* const stays = used(kLarge);
  use_and_free(2 * kLarge);
  the_heddled->allow_idle(false);
  ASSERT_EQ(cudaFree(stays), cudaSuccess);
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("free") == 2 && seen("end") == 1; }));
}

TEST_F(IdleTest, AWorkerThatIsAskedEndsTheTaskAndTheProgramBeginsAnother) {
  use_and_free(kLarge);
  the_heddled->reclaim();
  EXPECT_EQ(seen("reclaimed"), 1u);
  EXPECT_EQ(seen("ended"), 1u);
  use_and_free(kLarge);
  EXPECT_EQ(seen("begin"), 2u);
  EXPECT_EQ(seen("segment"), 2u);
}

TEST_F(IdleTest, OfATaskThatStillHoldsMemoryOnlyTheRestIsReclaimed) {
  void* const stays = used(kLarge);
  use_and_free(2 * kLarge);
  the_heddled->reclaim();
  EXPECT_EQ(seen("reclaimed"), 1u);
  EXPECT_EQ(seen("ended"), 0u);
  use_and_free(2 * kLarge);
  EXPECT_EQ(seen("segment"), 3u);
  EXPECT_EQ(seen("begin"), 1u);
  EXPECT_EQ(cudaFree(stays), cudaSuccess);
}

TEST_F(IdleTest, MemoryAllocatedAnewGoesWithTheNextTaskWhereTheWorkerEndedThisOne) {
  use_and_free(kLarge);
  void* const anew = allocate(kLarge);
  the_heddled->reclaim();
  EXPECT_EQ(seen("reclaimed"), 0u) << "it is in use";
  EXPECT_EQ(seen("ended"), 1u);
  ASSERT_EQ(cudaMemset(anew, 3, kLarge), cudaSuccess);
  ASSERT_EQ(launch_add(anew, 1, anew), cudaSuccess);
  std::vector<char> read(kLarge);
  ASSERT_EQ(cudaMemcpy(read.data(), anew, kLarge, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::count(read.begin(), read.end(), 3), static_cast<long>(kLarge));
  EXPECT_EQ(seen("begin"), 2u);
  EXPECT_EQ(seen("segment"), 1u);
  EXPECT_EQ(cudaFree(anew), cudaSuccess);
}

TEST_F(IdleTest, MemoryAllocatedAnewAndFreedWithoutUseIsGivenBackWithTheNextTask) {
  use_and_free(kLarge);
  void* const anew = allocate(kLarge);
  the_heddled->reclaim();
  ASSERT_EQ(cudaFree(anew), cudaSuccess);
  EXPECT_EQ(seen("begin"), 1u) << "nothing is to be done";
  use_and_free(2 * kLarge);
  EXPECT_EQ(seen("begin"), 2u);
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("free") == 1; }));
}

TEST_F(IdleTest, ALaunchBehindTheWorkersEndIsAnnouncedWithItsNeed) {
  use_and_free(kLarge);
  the_heddled->reclaim();
  ASSERT_EQ(launch_add(nullptr, 1, nullptr, nullptr, 9), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(seen("begin"), 2u);
  EXPECT_EQ(count("blocks 9"), 1u);
  use_and_free(kLarge);  // a task that has had no memory does not end
}

TEST_F(IdleTest, MemoryIsFreeToTheProgramWhileItIsIdle) {
  const uint64_t before = free_bytes();
  use_and_free(40 * kMiB);
  EXPECT_EQ(free_bytes(), before);
  void* const other = used(48 * kMiB);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("free") == 1; })) << "64 MiB are all it may hold";
  EXPECT_EQ(free_bytes(), before - 48 * kMiB);
  EXPECT_EQ(cudaFree(other), cudaSuccess);
}

TEST_F(IdleTest, NoMoreStaysThanTheProgramHeldAtOnce) {
  for (uint64_t pieces = 1; pieces <= 6; ++pieces) use_and_free(pieces * kLarge);
  const size_t kept = seen("segment") - seen("free");
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("segment") - seen("free") <= 2; })) << kept;
}

// The worker may have an image of it, which lives until the memory is unmapped and is copied back behind kernels.
TEST_F(IdleTest, MemoryThatATextureWasMadeOfGoesBackAtOnce) {
  void* const holds = used(kLarge);
  void* const textured = used(kLarge);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = textured;
  resource.res.linear.desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  resource.res.linear.sizeInBytes = 4096;
  cudaTextureDesc sampling{};
  cudaTextureObject_t texture = 0;
  ASSERT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDestroyTextureObject(texture), cudaSuccess);
  ASSERT_EQ(cudaFree(textured), cudaSuccess);
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("free") == 1; }));
  EXPECT_EQ(cudaFree(holds), cudaSuccess);
}

TEST_F(IdleTest, AResetGivesEverythingBack) {
  use_and_free(kLarge);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_TRUE(the_heddled->eventually([&] { return seen("free") == 1 && seen("end") == 1; }));
}

TEST_F(IdleTest, WhatTheCompilerFreesEarlyIsNotHandedOutBeforeTheProgramFreesIt) {
  void* const holds = used(kLarge);
  void* const early = used(2 * kLarge);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  heddle_task_api()->free_early(early);
  void* const other = used(2 * kLarge);
  EXPECT_NE(other, early);
  for (void* buffer : {early, other, holds}) EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
