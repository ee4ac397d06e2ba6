#include "device/software/simt/device_heap.h"

#include <gtest/gtest.h>

namespace heddle::software {
namespace {

TEST(DeviceHeap, IsExhaustedAndWholeAgainAfterFrees) {
  DeviceHeap heap(0x1000, 64);
  uint64_t a = heap.allocate(1), b = heap.allocate(16), c = heap.allocate(20);
  EXPECT_EQ(a, 0x1000u);
  EXPECT_EQ(b, 0x1010u);
  EXPECT_EQ(c, 0x1020u);
  EXPECT_EQ(heap.allocate(1), 0u);
  EXPECT_TRUE(heap.free(a));
  EXPECT_TRUE(heap.free(c));
  EXPECT_EQ(heap.allocate(33), 0u) << "the free pieces do not touch";
  EXPECT_TRUE(heap.free(b));
  EXPECT_EQ(heap.allocate(64), 0x1000u);
}

TEST(DeviceHeap, RefusesWhatItNeverGaveOut) {
  DeviceHeap heap(0x1000, 64);
  uint64_t a = heap.allocate(32);
  EXPECT_FALSE(heap.free(a + 16));
  EXPECT_FALSE(heap.free(0));
  EXPECT_TRUE(heap.free(a));
  EXPECT_FALSE(heap.free(a)) << "twice";
}

TEST(DeviceHeap, NothingAndMoreThanThereIsAreNull) {
  DeviceHeap heap(0x1000, 64);
  EXPECT_EQ(heap.allocate(0), 0u);
  EXPECT_EQ(heap.allocate(65), 0u);
  EXPECT_EQ(heap.allocate(UINT64_MAX), 0u);
}

}  // namespace
}  // namespace heddle::software
