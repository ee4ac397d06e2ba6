#include "worker/short_work.h"

#include <gtest/gtest.h>

namespace heddle::worker {
namespace {

constexpr WorkKind kFill{1, 1}, kCopy{2, 1};

TEST(ShortWork, WhatWasNeverSeenOrIsLongGoesThroughTheBooks) {
  ShortWork work;
  EXPECT_FALSE(work.take(kFill));
  work.counted(kFill, std::nullopt);
  EXPECT_FALSE(work.take(kFill));
  work.counted(kFill, ShortWork::kLongest + Duration(1));
  EXPECT_FALSE(work.take(kFill));
}

TEST(ShortWork, OfShortWorkOneInSoManyGoesThroughTheBooks) {
  ShortWork work;
  for (int round = 0; round < 3; ++round) {
    work.counted(kFill, ShortWork::kLongest);
    for (uint32_t i = 1; i < ShortWork::kOneIn; ++i) EXPECT_TRUE(work.take(kFill));
    EXPECT_FALSE(work.take(kFill));
  }
}

TEST(ShortWork, AKindKnowsNothingOfAnother) {
  ShortWork work;
  work.counted(kFill, Duration(1));
  EXPECT_FALSE(work.take(kCopy));
  EXPECT_TRUE(work.take(kFill));
}

}  // namespace
}  // namespace heddle::worker
