// The exported functions, against a heddled and workers in threads of this process.

#include <mutex>
#include <numeric>

#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::launch_add;
using testing::let_kernels_add;
using testing::program;
using testing::the_heddled;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

std::vector<int> numbers(size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

class ApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    let_kernels_add();
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    cudaGetLastError();
  }
  size_t seen() { return the_heddled->log().size(); }
  std::vector<std::string> since(size_t mark) {
    const auto all = the_heddled->log();
    return {all.begin() + static_cast<std::ptrdiff_t>(mark), all.end()};
  }
};

TEST_F(ApiTest, CopyKernelCopyBack) {
  int *in, *out, result = 0;
  const int value = 40;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&in), 4), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), 4), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(in, &value, 4, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(launch_add(out, 2, in), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(cudaFree(in), cudaSuccess);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(ApiTest, NothingIsDeclaredBeforeTheFirstLaunch) {
  const size_t mark = seen();
  void* memory;
  const auto data = numbers(1000);
  ASSERT_EQ(cudaMalloc(&memory, 4000), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(memory, data.data(), 4000, cudaMemcpyHostToDevice), cudaSuccess);
  cudaMemset(memory, 0, 16);
  for (const std::string& entry : since(mark)) EXPECT_FALSE(entry.starts_with("segment")) << entry;
  ASSERT_EQ(launch_add(nullptr, 0, nullptr, nullptr, 7), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(since(mark), Contains(::testing::HasSubstr("blocks 7")));
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  ASSERT_EQ(launch_add(nullptr, 0, nullptr), cudaSuccess) << "the next task begins when the last has ended";
  EXPECT_THAT(since(mark), Contains(::testing::StartsWith("end")));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(ApiTest, LargeCopiesPassThroughTheStagingAreaInPieces) {
  const auto data = numbers(3 << 20);  // 12 MiB through 2 MiB
  const size_t bytes = data.size() * sizeof(int);
  std::vector<int> back(data.size());
  void* memory;
  ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(memory, data.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(back.data(), memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, data);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(ApiTest, PitchedRowsKeepTheirPlaces) {
  const auto data = numbers(100 * 50);
  std::vector<int> back(data.size());
  void* memory;
  size_t pitch;
  ASSERT_EQ(cudaMallocPitch(&memory, &pitch, 400, 50), cudaSuccess);
  EXPECT_EQ(pitch, 512u);
  ASSERT_EQ(cudaMemcpy2D(memory, pitch, data.data(), 400, 400, 50, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2D(back.data(), 400, memory, pitch, 400, 50, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, data);
  EXPECT_EQ(cudaMemcpy2D(memory, 100, data.data(), 400, 400, 50, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(ApiTest, PinnedMemoryIsCopiedWithoutStaging) {
  int *pinned, *device;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 4096), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&device), 4096), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned + 5), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  pinned[0] = 11;
  ASSERT_EQ(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(the_heddled->device_memory(device), 11);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(ApiTest, LimitsReachTheWorkerAndAreWithinWhatIsPossible) {
  size_t value = 0;
  ASSERT_EQ(cudaDeviceGetLimit(&value, cudaLimitStackSize), cudaSuccess);
  EXPECT_EQ(value, 1024u);
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 5000), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetLimit(&value, cudaLimitStackSize), cudaSuccess);
  EXPECT_EQ(value, 5008u);
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitStackSize, 1 << 20), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1), cudaErrorUnsupportedLimit);
  EXPECT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, kGiB), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitMallocHeapSize, kMiB), cudaSuccess);
  ASSERT_EQ(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4096), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize), cudaSuccess);
  EXPECT_EQ(value, 4096u);
  void* memory;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  ASSERT_EQ(launch_add(nullptr, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_THAT(the_heddled->log(), Contains("limit 1 is 5008"));
  EXPECT_THAT(the_heddled->log(), Contains("limit 2 is " + std::to_string(kMiB)));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(ApiTest, BudgetIsTheLimitAndFreeingGivesItBack) {
  void *all, *more;
  ASSERT_EQ(cudaMalloc(&all, 64 * kMiB), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  size_t free_bytes, total;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
  EXPECT_EQ(free_bytes, 0u);
  EXPECT_EQ(total, 64 * kMiB);
  ASSERT_EQ(cudaFree(all), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&more, 1), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
}

TEST_F(ApiTest, WhatWasFreedBeforeTheFirstLaunchMakesRoom) {
  void *first, *second;
  ASSERT_EQ(cudaMalloc(&first, 40 * kMiB), cudaSuccess);
  ASSERT_EQ(cudaMemset(first, 0, 40 * kMiB), cudaSuccess);
  ASSERT_EQ(cudaFree(first), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&second, 40 * kMiB), cudaSuccess);
  ASSERT_EQ(launch_add(second, 1, second), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
}

TEST_F(ApiTest, WrongPointersAreInvalidValues) {
  int local = 0;
  void* memory;
  ASSERT_EQ(cudaMalloc(&memory, 2 * kMiB), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&local, memory, 2 * kMiB + 1, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(&local, &local, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(&local, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(static_cast<char*>(memory) + 256), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(ApiTest, ImpossibleLaunchesAreRefusedAtOnce) {
  void* none = nullptr;
  int number = 0;
  void* arguments[] = {&none, &number, &none};
  const auto launch = [&](dim3 grid, dim3 block, size_t shared) {
    return cudaLaunchKernel(&program().add, grid, block, arguments, shared, nullptr);
  };
  EXPECT_EQ(launch({0, 1, 1}, {1, 1, 1}, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 65536, 1}, {1, 1, 1}, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 1, 1}, {1025, 1, 1}, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 65}, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch({1, 1, 1}, {1024, 1, 1}, 0), cudaErrorInvalidValue) << "launch bounds of 512";
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 48 * kKiB), cudaErrorInvalidValue) << "besides 1 KiB of its own";
  EXPECT_EQ(launch({1, 1, 1}, {1, 1, 1}, 47 * kKiB), cudaSuccess);
  EXPECT_EQ(cudaLaunchKernel(&none, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(cudaLaunchKernel(&program().missing, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr),
            cudaErrorInvalidDeviceFunction);
}

TEST_F(ApiTest, KernelsTellWhatTheyNeed) {
  cudaFuncAttributes attributes;
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, &program().add), cudaSuccess);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 512);
  EXPECT_EQ(attributes.sharedSizeBytes, 1024u);
  EXPECT_EQ(attributes.ptxVersion, 80) << "what the program was compiled for";
  size_t size = 0;
  ASSERT_EQ(cudaGetSymbolSize(&size, &program().table), cudaSuccess);
  EXPECT_EQ(size, 64u);
}

TEST_F(ApiTest, StreamsAndEventsInOrder) {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&begin), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorInvalidResourceHandle) << "never recorded";
  ASSERT_EQ(cudaEventRecord(begin, stream), cudaSuccess);
  ASSERT_EQ(launch_add(nullptr, 0, nullptr, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(nullptr, end, 0), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(begin), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST_F(ApiTest, HostFunctionsRunInStreamOrder) {
  static std::mutex mutex;
  static std::vector<int> order;
  const auto append = [](void* data) {
    const std::lock_guard lock(mutex);
    order.push_back(*static_cast<int*>(data));
  };
  int one = 1, two = 2;
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, append, &one), cudaSuccess);
  ASSERT_EQ(launch_add(nullptr, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(nullptr, append, &two), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::lock_guard lock(mutex);
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(ApiTest, EventOfAnotherDeviceHoldsTheStreamBack) {
  cudaEvent_t event;
  cudaStream_t there;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&there), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  static std::atomic<bool> released;
  released = false;
  ASSERT_EQ(cudaLaunchHostFunc(
                there,
                [](void*) {
                  while (!released) std::this_thread::yield();
                },
                nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, there), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(nullptr, event, 0), cudaSuccess);
  ASSERT_EQ(launch_add(nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  released = true;
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(there), cudaSuccess);
}

TEST_F(ApiTest, MemoryOfTwoDevicesIsCopiedThroughTheHost) {
  int *here, *there, back = 0;
  const int value = 77;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&here), 4), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&there), 4), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(here, &value, 4, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(there, here, 4, cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(&back, there, 4, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(back, 77);
  EXPECT_EQ(cudaFree(there), cudaSuccess);
  EXPECT_EQ(cudaFree(here), cudaSuccess);
}

TEST_F(ApiTest, ThreadsShareADevice) {
  constexpr int kThreads = 4, kRounds = 200;
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      int *in, *out;
      if (cudaMalloc(reinterpret_cast<void**>(&in), 4) || cudaMalloc(reinterpret_cast<void**>(&out), 4)) ++bad;
      for (int i = 0; i < kRounds; ++i) {
        const int value = t * kRounds + i;
        int result = 0;
        void* arguments[] = {&out, const_cast<int*>(&i), &in};
        if (cudaMemcpy(in, &value, 4, cudaMemcpyHostToDevice)) ++bad;
        if (cudaLaunchKernel_ptsz(&program().add, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr)) ++bad;
        if (cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost) || result != value + i) ++bad;
      }
      if (cudaFree(in) || cudaFree(out)) ++bad;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bad, 0);
}

TEST_F(ApiTest, DevicesAreNumberedAndNamedByBus) {
  int count = 0, device = -1, value = -1;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 2);
  ASSERT_EQ(cudaDeviceGetByPCIBusId(&device, "0000:02:00.0"), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  ASSERT_EQ(cudaDeviceGetAttribute(&value, 16, 0), cudaSuccess);
  EXPECT_EQ(value, 56);
  EXPECT_EQ(cudaDeviceGetAttribute(&value, 9999, 0), cudaErrorInvalidValue);
}

TEST_F(ApiTest, CallConfigurationsNest) {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
  __cudaPushCallConfiguration({1, 1, 1}, {2, 1, 1}, 3, nullptr);
  __cudaPushCallConfiguration({4, 1, 1}, {5, 1, 1}, 6, nullptr);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(grid.x, 4u);
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(shared, 3u);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaErrorMissingConfiguration);
}

TEST_F(ApiTest, ResetGivesAllMemoryBack) {
  void* memory;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaMalloc(&memory, kMiB), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, 64 * kMiB), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
