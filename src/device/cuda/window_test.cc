// Which host memory a window registers with the driver, and when. The driver is a table of the test's own.

#include "device/cuda/window.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

namespace heddle::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kStep = 2 * kMiB, kDevicePart = 4 * kStep, kAll = 8 * kStep;

std::vector<uint64_t> registered, gone;  // addresses, in order
CUresult register_result = CUDA_SUCCESS;

uint64_t number_of(void* at) {
  return reinterpret_cast<uintptr_t>(at);
}

Driver window_driver() {
  Driver driver;
  driver.cuGetErrorName = [](CUresult, const char** text) {
    *text = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult, const char** text) {
    *text = "out of memory";
    return CUDA_SUCCESS;
  };
  driver.cuMemAddressReserve = [](CUdeviceptr* at, size_t, size_t, CUdeviceptr hint, unsigned long long) {
    *at = hint;
    return CUDA_SUCCESS;
  };
  driver.cuMemAddressFree = [](CUdeviceptr, size_t) { return CUDA_SUCCESS; };
  driver.cuMemHostRegister = [](void* at, size_t, unsigned) {
    if (register_result == CUDA_SUCCESS) registered.push_back(number_of(at));
    return register_result;
  };
  driver.cuMemHostUnregister = [](void* at) {
    gone.push_back(number_of(at));
    return CUDA_SUCCESS;
  };
  return driver;
}

// Addresses that nobody else has; they stay the process's.
uint64_t take_addresses() {
  void* at = ::mmap(nullptr, kAll + kStep, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_NE(at, MAP_FAILED);
  return (number_of(at) + kStep - 1) / kStep * kStep;
}

struct WindowTest : testing::Test {
  WindowTest() {
    registered.clear();
    gone.clear();
    register_result = CUDA_SUCCESS;
    LiftedHold hold(base, kDevicePart);
    auto range = AddressRange::reserve(table, hold);
    EXPECT_TRUE(range) << range.error().text;
    window = std::make_unique<Window>(table, Window::Shape{base, kAll, kDevicePart}, 0, std::move(*range));
  }
  // Maps host memory at the host part's n-th step.
  uint64_t host(uint64_t n) {
    const uint64_t address = base + kDevicePart + n * kStep;
    auto memory = create_memfd("window_test", Bytes{kStep});
    EXPECT_TRUE(memory);
    const Status mapped = window->map(address, Bytes{kStep}, *memory, true);
    EXPECT_TRUE(mapped) << mapped.error().text;
    return address;
  }
  const Driver table = window_driver();
  const uint64_t base = take_addresses();
  std::unique_ptr<Window> window;
};

TEST_F(WindowTest, HostMemoryIsRegisteredBeforeTheFirstWorkAndOnce) {
  const uint64_t first = host(0), second = host(1);
  EXPECT_THAT(registered, IsEmpty());
  EXPECT_EQ(window->register_mapped(), CUDA_SUCCESS);
  EXPECT_EQ(window->register_mapped(), CUDA_SUCCESS);
  EXPECT_THAT(registered, ElementsAre(first, second));
  EXPECT_TRUE(window->unmap(first, Bytes{kStep}));
  EXPECT_THAT(gone, ElementsAre(first));
  window.reset();
  EXPECT_THAT(gone, ElementsAre(first, second));
}

TEST_F(WindowTest, HostMemoryThatIsFreedBeforeItIsUsedIsNeverRegistered) {
  const uint64_t address = host(2);
  EXPECT_TRUE(window->unmap(address, Bytes{kStep}));
  EXPECT_EQ(window->register_mapped(), CUDA_SUCCESS);
  EXPECT_EQ(host(2), address) << "the addresses may be mapped again";
  EXPECT_EQ(window->register_mapped(), CUDA_SUCCESS);
  EXPECT_THAT(registered, ElementsAre(address));
  EXPECT_THAT(gone, IsEmpty());
}

TEST_F(WindowTest, MemoryOutsideIsPinnedAtTheFirstCopyUntilItIsUnpinned) {
  constexpr uint64_t kAddress = 4096;
  window->pin_later(kAddress, Bytes{kStep});
  window->unpin(kAddress);
  EXPECT_THAT(registered, IsEmpty());
  EXPECT_THAT(gone, IsEmpty());
  EXPECT_TRUE(window->pinned(kAddress + 8, 8));
  EXPECT_TRUE(window->pinned(kAddress, kStep));
  EXPECT_FALSE(window->pinned(kAddress, kStep + 1));
  EXPECT_THAT(registered, ElementsAre(kAddress));
  window->unpin(kAddress);
  EXPECT_THAT(gone, ElementsAre(kAddress));
  EXPECT_TRUE(window->pinned(kAddress, 8));
  EXPECT_THAT(registered, ElementsAre(kAddress, kAddress));
  window.reset();
  EXPECT_THAT(gone, ElementsAre(kAddress, kAddress));
}

TEST_F(WindowTest, MemoryThatTheDriverRefusesIsRefusedAtTheNextWork) {
  const uint64_t address = host(0);
  register_result = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(window->register_mapped(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(window->has_unregistered());
  EXPECT_TRUE(window->unmap(address, Bytes{kStep}));
  EXPECT_THAT(gone, IsEmpty());
}

}  // namespace
}  // namespace heddle::cuda
