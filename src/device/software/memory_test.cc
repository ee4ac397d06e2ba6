#include "device/software/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace heddle::software {
namespace {

constexpr uint64_t kGranule = MemoryMap::kGranule, kWindow = 64 * kGranule;

class DeviceMemoryTest : public testing::Test {
 protected:
  DeviceMemoryTest() {
    void* reserved = mmap(nullptr, kWindow + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    window_ = Mapping(reserved, kWindow + kGranule);
    base_ = round_up(reinterpret_cast<uintptr_t>(reserved), kGranule);
  }
  Mapping window_;
  uint64_t base_ = 0;
};

TEST_F(DeviceMemoryTest, OnlyMappedPartsOfTheWindowAreAccessible) {
  auto memory = DeviceMemory::create(base_, kWindow);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(memory->map(base_, Bytes{kGranule}, *create_memfd("segment", Bytes{kGranule})));
  EXPECT_TRUE(memory->accessible(base_, kGranule));
  EXPECT_FALSE(memory->accessible(base_, kGranule + 1));
  EXPECT_FALSE(memory->accessible(base_ + kGranule, 1));
}

TEST_F(DeviceMemoryTest, AddressesOfTheHostAreTheIssuersBusiness) {
  auto memory = DeviceMemory::create(base_, kWindow);
  ASSERT_TRUE(memory);
  int on_the_stack = 0;
  EXPECT_TRUE(memory->accessible(reinterpret_cast<uintptr_t>(&on_the_stack), sizeof(int)));
}

TEST_F(DeviceMemoryTest, RangesThatReachIntoTheWindowOrWrapAroundAreNot) {
  auto memory = DeviceMemory::create(base_, kWindow);
  ASSERT_TRUE(memory);
  EXPECT_FALSE(memory->accessible(base_ - 8, 16));
  EXPECT_FALSE(memory->accessible(base_ - 8, UINT64_MAX));
  EXPECT_FALSE(memory->accessible(base_ + kWindow - 8, UINT64_MAX));
}

TEST_F(DeviceMemoryTest, MemoryThatIsNotSealedIsRefused) {
  auto memory = DeviceMemory::create(base_, kWindow);
  ASSERT_TRUE(memory);
  Fd unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), kGranule), 0);
  EXPECT_FALSE(memory->map(base_, Bytes{kGranule}, unsealed));
}

TEST_F(DeviceMemoryTest, VariablesAreZeroAndApart) {
  auto memory = DeviceMemory::create(base_, kWindow);
  ASSERT_TRUE(memory);
  auto first = memory->add_variables(100), second = memory->add_variables(3 * kMiB);
  ASSERT_TRUE(first && second);
  EXPECT_GE(*second, *first + 100);
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(*first), 0u);
  std::memset(reinterpret_cast<void*>(*second), 1, 3 * kMiB);
  EXPECT_TRUE(memory->accessible(*second, 3 * kMiB));
  EXPECT_TRUE(memory->map().contains(*first, 100));
}

// As a session's next worker does, in a process of its own; here the first has to be gone.
TEST_F(DeviceMemoryTest, TheNextHasItsVariablesAtTheSameAddresses) {
  uint64_t first[2], again[2];
  for (auto* addresses : {first, again}) {
    auto memory = DeviceMemory::create(base_, kWindow);
    ASSERT_TRUE(memory);
    addresses[0] = *memory->add_variables(100);
    // What a launch may have added in between belongs to no program.
    if (addresses == first) {
      ASSERT_TRUE(memory->make_heap() && memory->grid_workspace(1));
    }
    addresses[1] = *memory->add_variables(3 * kMiB);
  }
  EXPECT_EQ(first[0], again[0]);
  EXPECT_EQ(first[1], again[1]);
}

TEST_F(DeviceMemoryTest, VariablesBeyondAllAddressesAreRefused) {
  auto memory = DeviceMemory::create(base_, kWindow);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->add_variables(UINT64_MAX).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(memory->add_variables(1ull << 40).error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace heddle::software
