// Stream-ordered allocation and memory pools, against a heddled and workers in threads of this process.

#include "client/memory/pool_types.h"
#include "client/testing/session_test.h"

extern "C" {
namespace heddle::client {
cudaError_t cudaMallocAsync(void**, size_t, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void**, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaFreeAsync(void*, cudaStream_t);
cudaError_t cudaMemPoolCreate(cudaMemPool_t*, const cudaMemPoolProps*);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t);
cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags*, cudaMemPool_t, cudaMemLocation*);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t*, int);
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t);
}  // namespace heddle::client
}

namespace heddle::client {
namespace {

using testing::launch_add;
using testing::the_heddled;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

class PoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamCreate(&other_), cudaSuccess);
    const cudaMemPoolProps props = of_device(0);
    ASSERT_EQ(cudaMemPoolCreate(&pool_, &props), cudaSuccess);
    keep(UINT64_MAX);
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (pool_) {
      EXPECT_EQ(cudaMemPoolDestroy(pool_), cudaSuccess);
    }
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    EXPECT_EQ(device_bytes(), 0u) << "everything went back";
    cudaGetLastError();
  }
  static cudaMemPoolProps of_device(int device) {
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.location = {cudaMemLocationTypeDevice, device};
    return props;
  }
  void keep(uint64_t bytes) {
    ASSERT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &bytes), cudaSuccess);
  }
  void* allocate(size_t bytes, cudaStream_t stream) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaMallocFromPoolAsync(&pointer, bytes, pool_, stream), cudaSuccess);
    return pointer;
  }
  uint64_t attribute(cudaMemPoolAttr which) {
    uint64_t value = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool_, which, &value), cudaSuccess);
    return value;
  }
  // What the program holds of the device, pools included.
  static uint64_t device_bytes() {
    size_t free_bytes = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total), cudaSuccess);
    return total - free_bytes;
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
};

TEST_F(PoolTest, FreedMemoryComesBackInStreamOrder) {
  void* const first = allocate(4 * kMiB, stream_);
  ASSERT_EQ(launch_add(first, 1, first, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  EXPECT_EQ(allocate(4 * kMiB, stream_), first) << "the same stream comes behind the free";
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  EXPECT_EQ(allocate(3 * kMiB, other_), first) << "another stream waits for it";
  ASSERT_EQ(cudaFreeAsync(first, other_), cudaSuccess);
  void* const small = allocate(kMiB / 2, stream_);
  EXPECT_NE(small, first) << "more than half of it would be wasted";
  ASSERT_EQ(cudaFreeAsync(small, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(small, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(small), cudaErrorInvalidValue);
}

TEST_F(PoolTest, AFreeOfAnotherStreamIsWaitedForOnTheDevice) {
  static std::atomic<bool> released;
  static std::atomic<int> value;
  released = false;
  value = 0;
  the_heddled->set_kernel([](const protocol::LaunchRecord&, const char*) { ++value; });
  void* const memory = allocate(4 * kMiB, stream_);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream_,
                [](void*) {
                  while (!released) std::this_thread::yield();
                },
                nullptr),
            cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess) << "does not wait for the stream";
  ASSERT_EQ(allocate(4 * kMiB, other_), memory);
  ASSERT_EQ(launch_add(memory, 1, memory, other_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(other_), cudaErrorNotReady);
  EXPECT_EQ(value, 0);
  released = true;
  ASSERT_EQ(cudaStreamSynchronize(other_), cudaSuccess);
  EXPECT_EQ(value, 1);
  ASSERT_EQ(cudaFreeAsync(memory, other_), cudaSuccess);
}

TEST_F(PoolTest, WithoutInternalDependenciesNothingWaits) {
  int no = 0;
  ASSERT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no), cudaSuccess);
  ASSERT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowOpportunistic, &no), cudaSuccess);
  void* const first = allocate(4 * kMiB, stream_);
  static std::atomic<bool> released;
  released = false;
  const auto hold = [](void*) {
    while (!released) std::this_thread::yield();
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream_, hold, nullptr), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  void* const second = allocate(4 * kMiB, other_);
  released = true;
  EXPECT_NE(second, first);
  ASSERT_EQ(cudaFreeAsync(second, other_), cudaSuccess);
}

TEST_F(PoolTest, AttributesTellWhatIsUsedAndReserved) {
  void* const first = allocate(4 * kMiB, stream_);
  void* const second = allocate(2 * kMiB, stream_);
  EXPECT_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 6 * kMiB);
  EXPECT_EQ(attribute(cudaMemPoolAttrReservedMemCurrent), 6 * kMiB);
  EXPECT_EQ(device_bytes(), 6 * kMiB);
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  EXPECT_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 2 * kMiB);
  EXPECT_EQ(attribute(cudaMemPoolAttrReservedMemCurrent), 6 * kMiB);
  EXPECT_EQ(attribute(cudaMemPoolAttrUsedMemHigh), 6 * kMiB);
  uint64_t value = 5;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &value), cudaErrorInvalidValue);
  value = 0;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &value), cudaSuccess);
  EXPECT_EQ(attribute(cudaMemPoolAttrUsedMemHigh), 2 * kMiB);
  ASSERT_EQ(cudaMemPoolTrimTo(pool_, 0), cudaSuccess);
  EXPECT_EQ(attribute(cudaMemPoolAttrReservedMemCurrent), 2 * kMiB) << "what is used stays";
  EXPECT_EQ(device_bytes(), 2 * kMiB);
  ASSERT_EQ(cudaFreeAsync(second, stream_), cudaSuccess);
}

TEST_F(PoolTest, AWaitGivesBackWhatIsAboveTheThreshold) {
  keep(2 * kMiB);
  void* const first = allocate(2 * kMiB, stream_);
  void* const second = allocate(4 * kMiB, stream_);
  ASSERT_EQ(cudaFreeAsync(first, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(second, stream_), cudaSuccess);
  EXPECT_EQ(device_bytes(), 6 * kMiB);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_LE(attribute(cudaMemPoolAttrReservedMemCurrent), 2 * kMiB);
  EXPECT_EQ(device_bytes(), attribute(cudaMemPoolAttrReservedMemCurrent));
}

TEST_F(PoolTest, PoolsMakeRoomForOthers) {
  void* const memory = allocate(60 * kMiB, stream_);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  void* plain = nullptr;
  ASSERT_EQ(cudaMalloc(&plain, 60 * kMiB), cudaSuccess);
  void* more = nullptr;
  EXPECT_EQ(cudaMallocAsync(&more, 60 * kMiB, stream_), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  ASSERT_EQ(cudaFreeAsync(plain, stream_), cudaSuccess) << "memory of cudaMalloc too";
  ASSERT_EQ(cudaMallocAsync(&more, 60 * kMiB, stream_), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
  EXPECT_EQ(device_bytes(), 0u);
}

TEST_F(PoolTest, PoolsHaveTheLimitThatTheProgramSets) {
  cudaMemPoolProps props = of_device(0);
  props.maxSize = 4 * kMiB;
  cudaMemPool_t limited;
  ASSERT_EQ(cudaMemPoolCreate(&limited, &props), cudaSuccess);
  void *memory, *more;
  ASSERT_EQ(cudaMallocFromPoolAsync(&memory, 4 * kMiB, limited, stream_), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&more, 2 * kMiB, limited, stream_), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&more, 2 * kMiB, limited, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemPoolDestroy(limited), cudaSuccess);
  EXPECT_EQ(cudaMallocFromPoolAsync(&memory, 4, limited, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(more, stream_), cudaSuccess) << "what it gave out lives on";
}

TEST_F(PoolTest, DevicesHaveADefaultAndACurrentPool) {
  cudaMemPool_t own, current;
  ASSERT_EQ(cudaDeviceGetDefaultMemPool(&own, 0), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(own, current);
  EXPECT_EQ(cudaMemPoolDestroy(own), cudaErrorInvalidValue);
  ASSERT_EQ(cudaDeviceSetMemPool(0, pool_), cudaSuccess);
  EXPECT_EQ(cudaDeviceSetMemPool(1, pool_), cudaErrorInvalidValue);
  void* memory;
  ASSERT_EQ(cudaMallocAsync(&memory, 2 * kMiB, stream_), cudaSuccess);
  EXPECT_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 2 * kMiB);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemPoolDestroy(std::exchange(pool_, nullptr)), cudaSuccess);
  ASSERT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(own, current);
}

TEST_F(PoolTest, PoolsAreTheirDevicesAlone) {
  cudaMemLocation here{cudaMemLocationTypeDevice, 0}, there{cudaMemLocationTypeDevice, 1};
  cudaMemAccessFlags flags;
  ASSERT_EQ(cudaMemPoolGetAccess(&flags, pool_, &here), cudaSuccess);
  EXPECT_EQ(flags, cudaMemAccessFlagsProtReadWrite);
  ASSERT_EQ(cudaMemPoolGetAccess(&flags, pool_, &there), cudaSuccess);
  EXPECT_EQ(flags, cudaMemAccessFlagsProtNone);
  const cudaMemAccessDesc wish{there, cudaMemAccessFlagsProtReadWrite};
  EXPECT_EQ(cudaMemPoolSetAccess(pool_, &wish, 1), cudaErrorInvalidDevice);
  cudaMemPoolProps shared = of_device(0);
  shared.handleTypes = 1;
  cudaMemPool_t pool;
  EXPECT_EQ(cudaMemPoolCreate(&pool, &shared), cudaErrorNotSupported);
}

}  // namespace
}  // namespace heddle::client
