// What segments give up in swap space, without a keeper that maps it.

#include "daemon/swap_space.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "core/clock.h"
#include "core/fd.h"

namespace heddle::daemon {
namespace {

constexpr Bytes kPieceSize{2 * kMiB};
constexpr DeviceId kPinningGpu{0};

struct SwapSpaceTest : ::testing::Test {
  SwapSpaceTest() {
    config.host = Bytes{6 * kPieceSize.value};
    config.pinned = Bytes{3 * kPieceSize.value};
  }
  // With memory that a keeper has made for it.
  Segment swapped(Bytes size = kPieceSize) {
    Segment segment;
    segment.bytes = size;
    segment.swap.place = Segment::Swap::kSwapped;
    SwapSpace::give(segment, made(size, space.new_mapping()));
    registry.swapped += size;
    return segment;
  }
  static MemoryAnswered made(Bytes size, uint64_t mapping) {
    return {{kPinningGpu, "GPU-a", SessionId{1}, 1, 1, size, true, mapping}, create_memfd("swap", size)};
  }
  void release(Segment segment) {
    registry.swapped -= segment.bytes;
    space.release(segment);
    EXPECT_FALSE(segment.swap.memory);
    EXPECT_EQ(segment.swap.mapping, 0u);
  }
  bool reuse(Bytes size = kPieceSize) {
    Segment segment;
    segment.bytes = size;
    return space.reuse(kPinningGpu, segment);
  }

  ManualClock clock;
  std::unique_ptr<EventLoop> loop = std::move(*EventLoop::create(clock));
  EventQueue events{[] {}};
  Keepers keepers{*loop, events, "", -1};
  SwapConfig config;
  Registry registry;
  SwapSpace space{*loop, clock, keepers, config, registry};
};

TEST_F(SwapSpaceTest, WhatASegmentHadIsTheNextOnes) {
  Segment first = swapped();
  const uint64_t mapping = first.swap.mapping;
  struct stat before {
  }, after{};
  ASSERT_EQ(::fstat(first.swap.memory.get(), &before), 0);
  release(std::move(first));
  EXPECT_EQ(registry.swap_kept, kPieceSize);
  Segment next;
  next.bytes = kPieceSize;
  ASSERT_TRUE(space.reuse(kPinningGpu, next));
  ASSERT_EQ(::fstat(next.swap.memory.get(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(next.swap.mapping, mapping);
  EXPECT_EQ(next.swap.mapped_by, kPinningGpu);
  EXPECT_EQ(registry.swap_kept, Bytes{});
  EXPECT_FALSE(reuse());
}

TEST_F(SwapSpaceTest, WhatAWorkerMayHaveMappedIsNotKept) {
  Segment segment = swapped();
  segment.swap.mapping = 0;
  release(std::move(segment));
  space.release(made(kPieceSize, 0));
  EXPECT_EQ(registry.swap_kept, Bytes{});
  EXPECT_FALSE(reuse());
}

// A keeper that is ending may write on.
TEST_F(SwapSpaceTest, WhatIsBeingCopiedIsNotKept) {
  Segment segment = swapped();
  segment.swap.copy = 1;
  release(std::move(segment));
  EXPECT_FALSE(reuse());
}

TEST_F(SwapSpaceTest, WhatComesTooLateIsKept) {
  space.release(made(kPieceSize, space.new_mapping()));
  EXPECT_TRUE(reuse());
  MemoryAnswered none = made(kPieceSize, space.new_mapping());
  none.memory = fail(ErrorCode::kOutOfMemory, "no more");
  space.release(std::move(none));
  EXPECT_EQ(registry.swap_kept, Bytes{});
}

TEST_F(SwapSpaceTest, NoMoreIsKeptThanIsConfigured) {
  for (int i = 0; i < 5; ++i) release(swapped());
  EXPECT_EQ(registry.swap_kept, *config.pinned);
}

TEST_F(SwapSpaceTest, NothingIsKeptWhereNothingIsToBe) {
  config.pinned = Bytes{};
  release(swapped());
  EXPECT_EQ(registry.swap_kept, Bytes{});
}

TEST_F(SwapSpaceTest, WhatIsKeptAndWhatIsUsedIsNeverMoreThanSwapSpace) {
  release(swapped(*config.pinned));
  EXPECT_EQ(registry.swap_kept, *config.pinned);
  registry.swapped += Bytes{3 * kPieceSize.value};  // of other sizes
  space.limit_kept();
  EXPECT_EQ(registry.swap_kept, *config.pinned);
  registry.swapped += kPieceSize;
  space.limit_kept();
  EXPECT_EQ(registry.swap_kept, Bytes{}) << "it goes as a whole";
  registry.swapped = Bytes{6 * kPieceSize.value};
  space.release(made(kPieceSize, space.new_mapping()));
  EXPECT_EQ(registry.swap_kept, Bytes{});
}

TEST_F(SwapSpaceTest, WhatNobodyUsesForAMinuteGoes) {
  Segment first = swapped(), second = swapped();
  release(std::move(first));
  clock.advance(SwapSpace::kKeptUnused / 2);
  release(std::move(second));
  const auto look = [&] { ASSERT_TRUE(loop->run_once(Duration{})); };
  look();
  EXPECT_EQ(registry.swap_kept, Bytes{2 * kPieceSize.value});
  clock.advance(SwapSpace::kKeptUnused / 2);
  look();
  EXPECT_EQ(registry.swap_kept, kPieceSize);
  clock.advance(SwapSpace::kKeptUnused / 2);
  look();
  EXPECT_EQ(registry.swap_kept, Bytes{});
  release(swapped());  // and from there on again
  clock.advance(SwapSpace::kKeptUnused);
  look();
  EXPECT_EQ(registry.swap_kept, Bytes{});
}

}  // namespace
}  // namespace heddle::daemon
