#include "device/software/transfer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace heddle::software {
namespace {

constexpr auto kOnDevice = device::CopyDirection::kOnDevice;

uint64_t address(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

bool everything(uint64_t, uint64_t) {
  return true;
}

TEST(Transfer, RowsWithoutGapsAreCheckedAsOne) {
  std::vector<uint8_t> from(24, 1), to(24);
  int checks = 0;
  auto count = [&](uint64_t, uint64_t bytes) {
    EXPECT_EQ(bytes, 24u);
    return ++checks > 0;
  };
  EXPECT_FALSE(run_copy({{address(to.data()), 4, 12}, {address(from.data()), 4, 12}, 4, 3, 2}, kOnDevice, count));
  EXPECT_EQ(checks, 2);
  EXPECT_EQ(to, from);
}

TEST(Transfer, SlicesWithGapsAreCopiedOneByOne) {
  std::vector<uint8_t> from(20), to(12);
  std::iota(from.begin(), from.end(), uint8_t{0});
  EXPECT_FALSE(run_copy({{address(to.data()), 3, 6}, {address(from.data()), 3, 10}, 3, 2, 2}, kOnDevice, everything));
  EXPECT_EQ(to, (std::vector<uint8_t>{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15}));
}

TEST(Transfer, NothingIsWrittenIfAnyRowIsBad) {
  std::vector<uint8_t> from(8, 1), to(8);
  uint64_t bad = address(to.data()) + 4;
  auto problem = run_copy({{address(to.data()), 4}, {address(from.data()), 2}, 2, 2}, kOnDevice,
                          [&](uint64_t at, uint64_t) { return at != bad; });
  ASSERT_TRUE(problem);
  EXPECT_NE(problem->find("copy to"), std::string::npos);
  EXPECT_EQ(to, std::vector<uint8_t>(8));
}

TEST(Transfer, OverlappingCopyStaysInside) {
  std::vector<uint8_t> bytes(10);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_FALSE(run_copy({{address(bytes.data()) + 1}, {address(bytes.data())}, 9}, kOnDevice, everything));
  EXPECT_EQ(bytes[9], 8);
}

TEST(Transfer, FillLeavesAPartialElementAlone) {
  std::vector<uint8_t> bytes(7, 9);
  device::FillShape shape{{address(bytes.data())}, 7, 1, 1, 0x0201, 2};
  EXPECT_FALSE(run_fill(shape, everything));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 2, 1, 2, 1, 2, 9}));
}

TEST(Transfer, EmptyShapesTouchNothing) {
  auto never = [](uint64_t, uint64_t) { return false; };
  EXPECT_FALSE(run_copy({{8}, {8}, 0, 5, 5}, kOnDevice, never));
  EXPECT_FALSE(run_fill({{8}, 5, 0, 5, 1, 1}, never));
}

}  // namespace
}  // namespace heddle::software
