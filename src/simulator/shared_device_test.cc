#include "simulator/shared_device.h"

#include <gtest/gtest.h>

namespace heddle::simulator {
namespace {

using Kind = SharedDevice::Kind;

constexpr Duration ms(int64_t count) {
  return std::chrono::milliseconds(count);
}
constexpr TimePoint at(int64_t milliseconds) {
  return TimePoint{ms(milliseconds)};
}

DeviceModel p100() {
  return *device_preset("P100");  // 3584 warps
}

TEST(SharedDevice, KernelsThatFitTogetherDoNotSlowEachOther) {
  SharedDevice device(p100());
  device.add(1, Kind::kKernels, ms(10), 1792, at(0));
  device.add(2, Kind::kKernels, ms(20), 1792, at(0));
  EXPECT_EQ(device.next()->at, at(10));
  EXPECT_EQ(device.next()->job, 1u);
  EXPECT_EQ(device.busy(at(10)), ms(10));
  EXPECT_EQ(device.busy_of_all(at(10)), 20e6);
  EXPECT_EQ(device.remove(1, at(10)), ms(0));
  EXPECT_EQ(device.next()->at, at(20));
}

TEST(SharedDevice, KernelsThatDoNotFitShareItByTheirWarps) {
  SharedDevice device(p100());
  device.add(1, Kind::kKernels, ms(10), 3584, at(0));
  device.add(2, Kind::kKernels, ms(10), 3584, at(0));
  EXPECT_EQ(device.next()->at, at(20));
  EXPECT_EQ(device.remove(2, at(10)), ms(5));
  EXPECT_EQ(device.next()->at, at(15));  // the other one has it to itself again
}

TEST(SharedDevice, TimeSlicesAreDealtOutWhateverTheSize) {
  DeviceModel model = p100();
  model.sharing = Sharing::kTimeSliced;
  SharedDevice device(model);
  device.add(1, Kind::kKernels, ms(10), 1, at(0));
  device.add(2, Kind::kKernels, ms(30), 1, at(0));
  EXPECT_EQ(device.next()->at, at(20));
}

TEST(SharedDevice, CopiesShareTheirEngineAndLeaveKernelsAlone) {
  SharedDevice device(p100());
  device.add(1, Kind::kCopy, ms(10), 1, at(0));
  device.add(2, Kind::kCopy, ms(10), 1, at(0));
  device.add(3, Kind::kKernels, ms(12), 3584, at(0));
  EXPECT_EQ(device.next()->at, at(12));
  EXPECT_EQ(device.remove(3, at(12)), ms(0));
  EXPECT_EQ(device.next()->at, at(20));
}

TEST(SharedDevice, ASlowDeviceTakesAsMuchLonger) {
  DeviceModel model = p100();
  model.slowdown = 3;
  model.copy_slowdown = 2;
  SharedDevice device(model);
  device.add(1, Kind::kKernels, ms(10), 1, at(0));
  EXPECT_EQ(device.next()->at, at(30));
  EXPECT_EQ(device.remove(1, at(15)), ms(5));
  device.add(1, Kind::kCopy, ms(10), 1, at(15));
  EXPECT_EQ(device.next()->at, at(35));
}

// One that waits for the bus half of its time stays twice as long, and has its warps on the device meanwhile.
TEST(SharedDevice, KernelsThatAreStretchedTakeAsMuchLonger) {
  SharedDevice device(p100());
  device.add(1, Kind::kKernels, ms(10), 3584, at(0), 2);
  EXPECT_EQ(device.next()->at, at(20));
  device.add(2, Kind::kKernels, ms(10), 3584, at(10));
  EXPECT_EQ(device.left_of(1, at(10)), ms(5));
  EXPECT_EQ(device.next()->at, at(30));
  EXPECT_EQ(device.next()->job, 1u);
  device.cut(1, ms(1), at(12));
  EXPECT_EQ(device.next()->at, at(16));
  EXPECT_EQ(device.remove(1, at(16)), std::chrono::microseconds(3500));
}

TEST(SharedDevice, WhatIsCutOffIsLeft) {
  SharedDevice device(p100());
  device.add(1, Kind::kKernels, ms(100), 1, at(0));
  device.cut(1, ms(2), at(30));
  EXPECT_EQ(device.next()->at, at(32));
  EXPECT_EQ(device.remove(1, at(32)), ms(68));
}

TEST(SharedDevice, BusyIsWhenAnyKernelIsThere) {
  SharedDevice device(p100());
  device.add(1, Kind::kKernels, ms(10), 1, at(5));
  device.add(2, Kind::kKernels, ms(10), 1, at(10));
  device.add(3, Kind::kCopy, ms(50), 1, at(10));
  EXPECT_EQ(device.busy_of(1, at(12)), ms(7));
  EXPECT_EQ(device.busy_of(2, at(12)), ms(2));
  EXPECT_EQ(device.busy_of(3, at(12)), ms(0));
  (void)device.remove(1, at(15));
  (void)device.remove(2, at(20));
  EXPECT_EQ(device.busy(at(60)), ms(15));
}

}  // namespace
}  // namespace heddle::simulator
