// Hints about managed memory, against a heddled in threads of this process.

#include "client/testing/session_test.h"

extern "C" {
namespace heddle::client {
#if HEDDLE_CUDART_MAJOR == 12
using Place = int;
cudaError_t cudaMemAdvise(const void*, size_t, int, int);
cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t);
constexpr int kOnDevice = 0, kOnOther = 1, kOnHost = -1, kNowhere = 7;
inline cudaError_t prefetch(const void* pointer, size_t bytes, int place, cudaStream_t stream = nullptr) {
  return cudaMemPrefetchAsync(pointer, bytes, place, stream);
}
#else
using Place = cudaMemLocation;
cudaError_t cudaMemAdvise(const void*, size_t, int, cudaMemLocation);
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t);
constexpr cudaMemLocation kOnDevice{1, 0}, kOnOther{1, 1}, kOnHost{2, 0}, kNowhere{1, 7};
inline cudaError_t prefetch(const void* pointer, size_t bytes, cudaMemLocation place, cudaStream_t stream = nullptr) {
  return cudaMemPrefetchAsync(pointer, bytes, place, 0, stream);
}
#endif
}  // namespace heddle::client
}

namespace heddle::client {
namespace {


const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

struct ManagedTest : ::testing::Test {
  void TearDown() override { cudaGetLastError(); }
};

TEST_F(ManagedTest, HintsAreTakenWhereTheyMakeSense) {
  char* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void**>(&memory), 10'000, 1), cudaSuccess);
  for (const Place& place : {kOnDevice, kOnOther, kOnHost}) {
    EXPECT_EQ(prefetch(memory, 10'000, place), cudaSuccess);
    for (int advice = 1; advice <= 6; ++advice) EXPECT_EQ(cudaMemAdvise(memory, 10'000, advice, place), cudaSuccess);
  }
  EXPECT_EQ(prefetch(memory + 5000, 5000, kOnDevice), cudaSuccess);
  EXPECT_EQ(prefetch(memory + 5000, 5001, kOnDevice), cudaErrorInvalidValue);
  EXPECT_EQ(prefetch(memory, 0, kOnDevice), cudaErrorInvalidValue);
  EXPECT_EQ(prefetch(memory, 100, kNowhere), cudaErrorInvalidDevice);
  EXPECT_EQ(prefetch(memory, 100, kOnDevice, reinterpret_cast<cudaStream_t>(0x1234)), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaMemAdvise(memory, 100, 3, kNowhere), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaMemAdvise(memory, 100, 1, kNowhere), cudaSuccess) << "reads say nothing of a place";
  EXPECT_EQ(cudaMemAdvise(memory, 100, 0, kOnDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemAdvise(memory, 100, 7, kOnDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(ManagedTest, HintsAboutOtherMemoryAreWrong) {
  void *device = nullptr, *pinned = nullptr;
  int on_stack = 0;
  ASSERT_EQ(cudaMalloc(&device, 100), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 100), cudaSuccess);
  for (void* memory : {device, pinned, static_cast<void*>(&on_stack), static_cast<void*>(nullptr)}) {
    EXPECT_EQ(prefetch(memory, 4, kOnDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemAdvise(memory, 4, 1, kOnDevice), cudaErrorInvalidValue);
  }
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
