// Who holds which chunk of managed memory, without any memory.

#include "client/memory/managed_chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum ManagedAccess;

constexpr ChunkRange kAll{0, 10};

TEST(ManagedChunks, BytesFallIntoChunks) {
  EXPECT_EQ(ManagedChunks::covering(0, 1), (ChunkRange{0, 1}));
  EXPECT_EQ(ManagedChunks::covering(0, kManagedChunkBytes), (ChunkRange{0, 1}));
  EXPECT_EQ(ManagedChunks::covering(kManagedChunkBytes - 1, 2), (ChunkRange{0, 2}));
  EXPECT_EQ(ManagedChunks::covering(3 * kManagedChunkBytes + 5, 1), (ChunkRange{3, 1}));
}

TEST(ManagedChunks, NobodyHasToFetchOrPushWhatIsNew) {
  ManagedChunks chunks(10);
  EXPECT_THAT(chunks.to_fetch(kAll), IsEmpty());
  EXPECT_THAT(chunks.to_push(kAll), IsEmpty());
  EXPECT_FALSE(chunks.host_may(0, kRead));
  EXPECT_THAT(chunks.device_uses(kAll, kWrite), IsEmpty()) << "the host had no access that it could lose";
  EXPECT_EQ(chunks.beside_device(), 0u);
  EXPECT_THAT(chunks.to_fetch(kAll), ElementsAre(kAll));
}

TEST(ManagedChunks, WhatTheHostWroteGoesToTheDeviceOnce) {
  ManagedChunks chunks(10);
  EXPECT_THAT(chunks.host_uses({2, 3}, kWrite), ElementsAre(ChunkRange{2, 3}));
  EXPECT_TRUE(chunks.host_may(2, kWrite));
  EXPECT_THAT(chunks.to_push(kAll), ElementsAre(ChunkRange{2, 3}));
  EXPECT_THAT(chunks.device_uses(kAll, kWrite), ElementsAre(ChunkRange{2, 3}));
  EXPECT_THAT(chunks.to_push(kAll), IsEmpty());
  EXPECT_FALSE(chunks.host_may(2, kRead));
}

TEST(ManagedChunks, WhatTheHostReadIsBoths) {
  ManagedChunks chunks(10);
  (void)chunks.device_uses(kAll, kWrite);
  EXPECT_THAT(chunks.host_uses({4, 2}, kRead), ElementsAre(ChunkRange{4, 2}));
  EXPECT_TRUE(chunks.host_may(4, kRead));
  EXPECT_FALSE(chunks.host_may(4, kWrite));
  EXPECT_THAT(chunks.to_push(kAll), IsEmpty());
  EXPECT_THAT(chunks.to_fetch(kAll), ElementsAre(ChunkRange{0, 4}, ChunkRange{6, 4}));
  EXPECT_EQ(chunks.beside_device(), 2u);
  EXPECT_THAT(chunks.device_uses(kAll, kRead), IsEmpty()) << "both may read it";
  EXPECT_THAT(chunks.device_uses(kAll, kWrite), ElementsAre(ChunkRange{4, 2}));
}

TEST(ManagedChunks, TheHostMayStillReadWhatTheDeviceReads) {
  ManagedChunks chunks(10);
  (void)chunks.host_uses({0, 4}, kWrite);
  EXPECT_THAT(chunks.device_uses({1, 2}, kRead), ElementsAre(ChunkRange{1, 2}));
  EXPECT_EQ(chunks.holder(0), ChunkHolder::kHost);
  EXPECT_EQ(chunks.holder(1), ChunkHolder::kBoth);
  EXPECT_THAT(chunks.host_uses({0, 4}, kWrite), ElementsAre(ChunkRange{1, 2})) << "the others it may write already";
}

TEST(ManagedChunks, ReadingTakesNothingFromTheHostThatItWrote) {
  ManagedChunks chunks(10);
  (void)chunks.host_uses({0, 2}, kWrite);
  EXPECT_THAT(chunks.host_uses({0, 3}, kRead), ElementsAre(ChunkRange{2, 1}));
  EXPECT_EQ(chunks.holder(0), ChunkHolder::kHost);
  EXPECT_EQ(chunks.holder(2), ChunkHolder::kBoth);
}

TEST(ManagedChunks, RangesBesideAreNotTouched) {
  ManagedChunks chunks(10);
  (void)chunks.host_uses(kAll, kWrite);
  EXPECT_THAT(chunks.to_push({3, 1}), ElementsAre(ChunkRange{3, 1}));
  EXPECT_THAT(chunks.device_uses({3, 1}, kWrite), ElementsAre(ChunkRange{3, 1}));
  EXPECT_THAT(chunks.to_push(kAll), ElementsAre(ChunkRange{0, 3}, ChunkRange{4, 6}));
  EXPECT_THAT(chunks.to_fetch(kAll), ElementsAre(ChunkRange{3, 1}));
}

}  // namespace
}  // namespace heddle::client
