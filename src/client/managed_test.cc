// Hints about managed memory, and memory that the program registers, against a heddled in threads of this process.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

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
cudaError_t cudaMemRangeGetAttribute(void*, size_t, int, const void*, size_t);
cudaError_t cudaMemRangeGetAttributes(void**, size_t*, int*, size_t, const void*, size_t);
cudaError_t cudaStreamSetAttribute(cudaStream_t, int, const cudaLaunchAttributeValue*);
cudaError_t cudaStreamGetAttribute(cudaStream_t, int, cudaLaunchAttributeValue*);
cudaError_t cudaStreamCopyAttributes(cudaStream_t, cudaStream_t);
cudaError_t cudaStreamGetPriority(cudaStream_t, int*);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**);
cudaError_t cudaHostRegister(void*, size_t, unsigned);
cudaError_t cudaHostUnregister(void*);
cudaError_t cudaHostGetDevicePointer(void**, void*, unsigned);
cudaError_t cudaHostGetFlags(unsigned*, void*);
}  // namespace heddle::client
}

namespace heddle::client {
namespace {

using testing::launch_add;
using testing::let_kernels_add;
using testing::the_heddled;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

constexpr size_t kPage = 4096, kHinted = 100'000;

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

TEST_F(ManagedTest, HintsAreToldAsTheyWereGiven) {
  char* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void**>(&memory), kHinted, 1), cudaSuccess);
  const auto told = [&](int attribute, size_t offset = 0, size_t bytes = kHinted) {
    int value = 77;
    EXPECT_EQ(cudaMemRangeGetAttribute(&value, sizeof value, attribute, memory + offset, bytes), cudaSuccess);
    return value;
  };
  EXPECT_EQ(told(1), 0);
  EXPECT_EQ(told(2), -2);
  EXPECT_EQ(told(4), -2);
  EXPECT_EQ(told(5), 0);

  EXPECT_EQ(cudaMemAdvise(memory, kHinted, 1, kOnDevice), cudaSuccess);
  EXPECT_EQ(cudaMemAdvise(memory, 50'000, 3, kOnOther), cudaSuccess);
  EXPECT_EQ(prefetch(memory, kHinted, kOnHost), cudaSuccess);
  EXPECT_EQ(told(1), 1);
  EXPECT_EQ(told(2), -2) << "half of it";
  EXPECT_EQ(told(2, 0, 50'000), 1);
  EXPECT_EQ(told(5, 0, 50'000), 1);
  EXPECT_EQ(told(6, 0, 50'000), 1);
  EXPECT_EQ(told(4), -1);
  EXPECT_EQ(told(7), 2);

  EXPECT_EQ(cudaMemAdvise(memory, kHinted, 5, kOnOther), cudaSuccess);
  int devices[3] = {}, mostly = 0;
  void* data[] = {devices, &mostly};
  size_t sizes[] = {sizeof devices, sizeof mostly};
  int attributes[] = {3, 1};
  EXPECT_EQ(cudaMemRangeGetAttributes(data, sizes, attributes, 2, memory, kHinted), cudaSuccess);
  EXPECT_THAT(devices, ::testing::ElementsAre(1, -2, -2));
  EXPECT_EQ(mostly, 1);
  EXPECT_EQ(cudaMemRangeGetAttribute(devices, sizeof devices, 1, memory, kHinted), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemRangeGetAttribute(&mostly, sizeof mostly, 9, memory, kHinted), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemRangeGetAttribute(&mostly, sizeof mostly, 1, memory, kHinted + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);

  ASSERT_EQ(cudaMallocManaged(reinterpret_cast<void**>(&memory), kHinted, 1), cudaSuccess);
  EXPECT_EQ(told(1), 0) << "of freed memory nothing is said";
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

TEST_F(ManagedTest, AttributesOfStreamsAreRemembered) {
  constexpr int kWindow = 1, kPolicy = 3, kPriority = 8, kNone = 12;
  cudaStream_t stream = nullptr, other = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
  cudaLaunchAttributeValue set{}, got{};
  std::memset(set.pad, 5, 32);
  EXPECT_EQ(cudaStreamSetAttribute(stream, kWindow, &set), cudaSuccess);
  EXPECT_EQ(cudaStreamCopyAttributes(other, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamGetAttribute(other, kWindow, &got), cudaSuccess);
  EXPECT_EQ(std::string(got.pad, sizeof got.pad), std::string(set.pad, sizeof set.pad));
  EXPECT_EQ(cudaStreamGetAttribute(stream, kPolicy, &got), cudaSuccess);
  EXPECT_EQ(got.pad[0], 1) << "automatic";
  cudaLaunchAttributeValue high{};
  high.cooperative = -2;  // an int at its start
  EXPECT_EQ(cudaStreamSetAttribute(stream, kPriority, &high), cudaSuccess);
  int priority = 0;
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(priority, -2);
  EXPECT_EQ(cudaStreamSetAttribute(stream, kNone, &set), cudaErrorNotSupported);
  cudaLaunchAttribute window{static_cast<cudaLaunchAttributeID>(kWindow), {}, set};
  const cudaLaunchConfig_t config{{1, 1, 1}, {1, 1, 1}, 0, stream, &window, 1};
  int *to = nullptr, *from = nullptr, number = 0;
  void* arguments[] = {&to, &number, &from};
  the_heddled->set_kernel(nullptr);
  EXPECT_EQ(cudaLaunchKernelExC(&config, &testing::program().add, arguments), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudaStreamGetAttribute(stream, kWindow, &got), cudaSuccess);
  EXPECT_EQ(got.pad[0], 0) << "a new stream has none";
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

struct RegisteredTest : ManagedTest {
  void SetUp() override { let_kernels_add(); }
  // Pages of the program's own.
  static int* map(size_t pages, int access = PROT_READ | PROT_WRITE, int flags = MAP_PRIVATE) {
    void* const at = ::mmap(nullptr, pages * kPage, access, flags | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    return static_cast<int*>(at);
  }
};

TEST_F(RegisteredTest, KernelsReachMappedMemoryAtItsDeviceAddress) {
  std::vector<int> memory(100'000);  // of the heap: it shares its first and last page with others
  std::iota(memory.begin(), memory.end(), 0);
  const size_t bytes = memory.size() * sizeof(int);
  ASSERT_EQ(cudaHostRegister(memory.data(), bytes, cudaHostRegisterMapped), cudaSuccess);
  int *device = nullptr, *last = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), memory.data(), 0), cudaSuccess);
  ASSERT_EQ(cudaHostGetDevicePointer(reinterpret_cast<void**>(&last), &memory.back(), 0), cudaSuccess);
  EXPECT_EQ(last, device + memory.size() - 1);
  ASSERT_EQ(launch_add(last, 7, device + 5), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(memory.back(), 12) << "what a kernel writes the program sees";
  memory[5] = 30;
  ASSERT_EQ(launch_add(last, 7, device + 5), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(memory.back(), 37) << "and the other way";
  unsigned flags = 0;
  EXPECT_EQ(cudaHostGetFlags(&flags, memory.data()), cudaSuccess);
  EXPECT_EQ(flags, cudaHostRegisterMapped);
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, memory.data() + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.devicePointer, device + 1);
  EXPECT_EQ(cudaFreeHost(device), cudaErrorInvalidValue) << "it is unregistered, not freed";
  ASSERT_EQ(cudaHostUnregister(memory.data()), cudaSuccess);
  EXPECT_EQ(memory[5], 30);
  EXPECT_EQ(memory[99'998], 99'998);
  EXPECT_EQ(memory.back(), 37) << "it has what it had";
  EXPECT_EQ(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), memory.data(), 0), cudaErrorInvalidValue);
}

TEST_F(RegisteredTest, MemoryIsPrivateAgainAfterwards) {
  int* const memory = map(2);
  memory[0] = 1;
  ASSERT_EQ(cudaHostRegister(memory, 2 * kPage, cudaHostRegisterMapped), cudaSuccess);
  ASSERT_EQ(cudaHostUnregister(memory), cudaSuccess);
  const pid_t child = ::fork();
  if (child == 0) {
    memory[0] = 2;
    ::_exit(0);
  }
  ASSERT_GT(child, 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(memory[0], 1);
  ::munmap(memory, 2 * kPage);
}

TEST_F(RegisteredTest, AnAddressCanBeAskedForLater) {
  int* const memory = map(1);
  memory[3] = 4;
  ASSERT_EQ(cudaHostRegister(memory, kPage, 0), cudaSuccess);
  int* device = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), memory, 0), cudaSuccess);
  EXPECT_EQ(device[3], 4);
  ASSERT_EQ(cudaHostUnregister(memory), cudaSuccess);
  EXPECT_EQ(memory[3], 4);
  ::munmap(memory, kPage);
}

TEST_F(RegisteredTest, RegistrationsDoNotOverlap) {
  int* const memory = map(4);
  ASSERT_EQ(cudaHostRegister(memory, 2 * kPage, cudaHostRegisterMapped), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(memory, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostRegister(memory + 1000, 2 * kPage, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostRegister(memory + 2 * kPage / 4, kPage, cudaHostRegisterMapped), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory + 1), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostUnregister(memory), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(cudaHostUnregister(memory + 2 * kPage / 4), cudaSuccess);
  ::munmap(memory, 4 * kPage);
}

TEST_F(RegisteredTest, WhatCannotBeMovedIsRefusedWithItsReason) {
  const auto refusal = [](void* memory) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(cudaHostRegister(memory, 64, cudaHostRegisterMapped), cudaErrorNotSupported);
    return ::testing::internal::GetCapturedStderr();
  };
  // A variable may lie elsewhere: AddressSanitizer keeps them on a stack of its own.
  EXPECT_THAT(refusal(__builtin_frame_address(0)), ::testing::HasSubstr("stack"));
  int* const shared = map(1, PROT_READ | PROT_WRITE, MAP_SHARED);
  EXPECT_THAT(refusal(shared), ::testing::HasSubstr("others may share"));
  int* const read_only = map(1, PROT_READ);
  EXPECT_THAT(refusal(read_only), ::testing::HasSubstr("cannot be read and written"));
  int* const gone = map(1);
  ::munmap(gone, kPage);
  EXPECT_THAT(refusal(gone), ::testing::HasSubstr("not all of it is mapped"));
  ::munmap(shared, kPage);
  ::munmap(read_only, kPage);
}

// A thread counts in the memory all the time: no step of it is lost.
TEST_F(RegisteredTest, OtherThreadsWriteMeanwhile) {
  int* const memory = map(256);
  auto* const counter = reinterpret_cast<std::atomic<int>*>(memory + 100);
  std::atomic<bool> stop{false}, counting{false};
  int counted = 0;
  std::thread thread([&] {
    for (; !stop; ++counted) {
      counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      counting = true;
    }
  });
  while (!counting) std::this_thread::yield();
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(cudaHostRegister(memory, 256 * kPage, cudaHostRegisterMapped), cudaSuccess);
    EXPECT_EQ(cudaHostUnregister(memory), cudaSuccess);
  }
  stop = true;
  thread.join();
  EXPECT_EQ(counter->load(), counted);
  ::munmap(memory, 256 * kPage);
}

}  // namespace
}  // namespace heddle::client
