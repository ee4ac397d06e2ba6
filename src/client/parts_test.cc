// The small parts: staging area, handles, maps, pieces of copies.

#include <gtest/gtest.h>

#include "client/answer.h"
#include "client/copy/copy_pieces.h"
#include "client/device/bulk_area.h"
#include "client/device/handle_table.h"
#include "client/flat_map.h"
#include "core/units.h"

namespace heddle::client {
namespace {

TEST(BulkArea, BlockFreedLastIsGivenOutFirst) {
  BulkArea area(2 * kMiB);
  const auto one = area.reserve(area.block_bytes(), 0), two = area.reserve(area.block_bytes(), 0);
  ASSERT_TRUE(one && two);
  area.release(*one, 1);
  area.release(*two, 2);
  EXPECT_EQ(area.blocks_in_use(1), 1u);
  EXPECT_EQ(area.reserve(area.block_bytes(), 1), one);
}

TEST(BulkArea, BlockStaysWhileAHolderCopiesThoughItsRecordIsCommitted) {
  BulkArea area(2 * kMiB);
  ASSERT_TRUE(area.reserve(area.block_bytes(), 0));
  EXPECT_EQ(area.blocks_in_use(1000), 1u);
}

TEST(BulkArea, FullAreaRefusesUntilSomethingIsCommitted) {
  BulkArea area(2 * kMiB);
  uint64_t last = 0;
  for (uint64_t i = 1; i <= 8; ++i) {
    last = *area.reserve(area.block_bytes(), 0);
    area.release(last, i);
  }
  EXPECT_FALSE(area.reserve(area.block_bytes(), 0));
  EXPECT_FALSE(area.reserve(1, 0));
  EXPECT_TRUE(area.reserve(area.block_bytes(), 1));
}

TEST(BulkArea, SmallPayloadsShareABlockAndUseItAgain) {
  BulkArea area(2 * kMiB);
  const auto one = area.reserve(100, 0), two = area.reserve(100, 0);
  EXPECT_EQ(*two, *one + 128);
  area.release(*one, 1);
  area.release(*two, 2);
  EXPECT_EQ(area.blocks_in_use(0), 1u);
  EXPECT_EQ(*area.reserve(100, 1), *one + 256) << "the second is still needed";
  BulkArea again(2 * kMiB);
  const auto first = again.reserve(100, 0);
  again.release(*first, 1);
  EXPECT_EQ(again.reserve(100, 1), first);
}

TEST(Handles, StaleAndForeignHandlesAreRecognised) {
  HandleTable<int> table(kStreamTag, 4);
  const auto always = [](uint32_t, int) { return true; };
  const uint32_t slot = *table.open(1, always);
  const uint64_t handle = table.handle(3, slot);
  const auto parsed = Handle::parse(kStreamTag, handle);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->device, 3u);
  EXPECT_EQ(table.find(*parsed), slot);
  EXPECT_FALSE(Handle::parse(kEventTag, handle));
  table.close(slot);
  EXPECT_FALSE(table.find(*parsed));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(table.open(2, always));
  EXPECT_FALSE(table.find(*parsed)) << "the slot's next use";
  EXPECT_FALSE(table.open(3, always)) << "all in use";
}

TEST(Handles, NumbersRiseThoughSlotsAreUsedAgain) {
  HandleTable<int> table(kTextureTag, 3);
  const auto always = [](uint32_t, int) { return true; };
  const uint32_t stays = *table.open(0, always);
  uint64_t last = table.handle(0, stays);
  for (int i = 0; i < 10; ++i) {
    const uint32_t slot = *table.open(0, always);
    EXPECT_GT(table.handle(0, slot), last);
    last = table.handle(0, slot);
    table.close(slot);
  }
}

TEST(Handles, SlotWithUnfinishedWorkIsPassedOver) {
  HandleTable<int> table(kEventTag, 2);
  const auto idle = [](uint32_t, int state) { return state == 0; };
  const uint32_t busy = *table.open(7, idle);
  table.close(busy);
  EXPECT_NE(*table.open(0, idle), busy);
  EXPECT_FALSE(table.open(0, idle));
}

TEST(Failure, WhatHeddledRefusesComesBackAsTheCodeThatItSent) {
  EXPECT_EQ(Failure(Error{ErrorCode::kOutOfMemory, "full"}).code, cudaErrorMemoryAllocation);
  EXPECT_EQ(Failure(Error{ErrorCode::kNotFound, ""}).code, cudaErrorNoDevice);
  EXPECT_EQ(Failure(Error{ErrorCode::kPermission, ""}).code, cudaErrorNotPermitted);
  EXPECT_EQ(Failure(Error{ErrorCode::kInternal, ""}).code, cudaErrorUnknown);
  EXPECT_EQ(Failure(Error{ErrorCode::kPeerDied, ""}).code, cudaErrorDevicesUnavailable);
  EXPECT_EQ(Failure(Error{ErrorCode::kOutOfMemory, "full"}).text, "full");
}

TEST(FlatMap, KeepsManyKeysAndReplacesValues) {
  FlatMap<int> map;
  std::vector<int> values(1000);
  for (size_t i = 0; i < values.size(); ++i) map.insert(&values[i], &values[i]);
  for (int& value : values) ASSERT_EQ(map.find(&value), &value);
  map.insert(&values[0], &values[1]);
  EXPECT_EQ(map.find(&values[0]), &values[1]);
  int other;
  EXPECT_EQ(map.find(&other), nullptr);
}

// Every byte of a copy is in exactly one piece.
uint64_t total(CopyPieces pieces, uint64_t limit, int* count = nullptr) {
  uint64_t bytes = 0;
  while (const auto piece = pieces.next()) {
    EXPECT_LE(piece->bytes(), limit);
    bytes += piece->bytes();
    if (count) ++*count;
  }
  return bytes;
}

TEST(CopyPieces, DenseRowsAreOneLongRow) {
  CopyPlace dense;
  dense.pitch = 100;
  dense.slice = 1000;
  int pieces = 0;
  EXPECT_EQ(total(CopyPieces({100, 10, 3}, dense, dense, 1 << 20), 1 << 20, &pieces), 3000u);
  EXPECT_EQ(pieces, 1);
}

TEST(CopyPieces, PitchedRowsStayWholeWhereTheyFit) {
  CopyPlace dense, pitched;
  dense.pitch = 100;
  pitched.pitch = 512;
  CopyPieces pieces({100, 10, 1}, pitched, dense, 450);
  const auto first = pieces.next();
  EXPECT_EQ(first->width, 100u);
  EXPECT_EQ(first->rows, 4u);
  EXPECT_EQ(pieces.next()->at.y, 4u);
}

TEST(CopyPieces, RowsLongerThanAPieceAreCut) {
  CopyPlace dense, pitched;
  dense.pitch = 1000;
  pitched.pitch = 4096;
  EXPECT_EQ(total(CopyPieces({1000, 7, 2}, pitched, dense, 300), 300), 14000u);
}

}  // namespace
}  // namespace heddle::client
