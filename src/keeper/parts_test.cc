#include "keeper/parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace heddle::keeper {
namespace {

using device::CopyShape;

std::vector<CopyShape> parts_of(const CopyShape& whole) {
  Parts parts(whole);
  std::vector<CopyShape> all;
  while (const auto part = parts.next()) all.push_back(*part);
  return all;
}

uint64_t bytes_of(const std::vector<CopyShape>& parts) {
  uint64_t bytes = 0;
  for (const CopyShape& part : parts) bytes += part.width * part.height * part.depth;
  return bytes;
}

TEST(Parts, ASmallCopyIsOne) {
  const auto parts = parts_of({{100}, {200}, 10});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].to.address, 100u);
  EXPECT_EQ(parts[0].from.address, 200u);
  EXPECT_EQ(parts[0].width, 10u);
}

TEST(Parts, ALongRowIsCut) {
  const auto parts = parts_of({{0}, {kGiB}, 2 * Parts::kBytes + 5});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].to.address, Parts::kBytes);
  EXPECT_EQ(parts[2].from.address, kGiB + 2 * Parts::kBytes);
  EXPECT_EQ(parts[2].width, 5u);
}

TEST(Parts, RowsWithoutGapsAreOneLongRow) {
  EXPECT_EQ(parts_of({{0, 16, 64}, {0, 16, 64}, 16, 4, 8}).size(), 1u);
}

TEST(Parts, RowsWithGapsStayRows) {
  const auto parts = parts_of({{0, kMiB}, {0, 2 * kMiB}, kMiB - 4, 1000});
  EXPECT_EQ(bytes_of(parts), (kMiB - 4) * 1000);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].height, 256u);
  EXPECT_EQ(parts[1].to.address, 256 * kMiB);
  EXPECT_EQ(parts[1].from.address, 512 * kMiB);
  EXPECT_EQ(parts[1].to.pitch, kMiB);
}

TEST(Parts, RowsLongerThanAPartAreCutEach) {
  const uint64_t pitch = 2 * Parts::kBytes, width = Parts::kBytes + 3;
  const auto parts = parts_of({{0, pitch}, {0, pitch}, width, 3});
  ASSERT_EQ(parts.size(), 6u);
  EXPECT_EQ(bytes_of(parts), 3 * width);
  EXPECT_EQ(parts[3].to.address, pitch + Parts::kBytes);
  EXPECT_EQ(parts[3].height, 1u);
}

TEST(Parts, ManyTinyRowsAreCut) {
  const auto parts = parts_of({{0, 8}, {0, 8}, 1, Parts::kRows + 7});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].height, 7u);
}

TEST(Parts, SlicesOfOneRowAreRows) {
  const auto parts = parts_of({{0, 0, 64}, {0, 0, 32}, 16, 1, 100});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].height, 100u);
  EXPECT_EQ(parts[0].to.pitch, 64u);
  EXPECT_EQ(parts[0].from.pitch, 32u);
}

TEST(Parts, SlicesFollowEachOther) {
  const auto parts = parts_of({{0, 16, 256}, {0, 32, 512}, 8, 4, 3});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].to.address, 512u);
  EXPECT_EQ(parts[2].from.address, 1024u);
  EXPECT_EQ(parts[2].height, 4u);
}

}  // namespace
}  // namespace heddle::keeper
