// The supply over the driver that tests bring, in this process.

#include "keeper/supply.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "keeper/test_driver.h"

namespace heddle::keeper {
namespace {

constexpr Bytes kSmall{2 * kMiB}, kLarge{8 * kMiB};

struct SupplyTest : testing::Test {
  Result<Fd> make(Bytes size) { return std::move(supply.make({&size, 1}).front()); }
  // Memory that a tenant has written to.
  Fd used(Bytes size) {
    Fd memory = std::move(*make(size));
    auto mapping = map_shared(memory, size);
    std::memset(mapping->data(), 0xab, mapping->size());
    return memory;
  }
  static bool is_zero(const Fd& memory, Bytes size) {
    const auto mapping = map_shared(memory, size, false);
    const auto* bytes = static_cast<const char*>(mapping->data());
    return std::all_of(bytes, bytes + mapping->size(), [](char byte) { return byte == 0; });
  }
  // What a pipe's reader sees hung up is no longer in the pool.
  static std::pair<Fd, Fd> watched() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    return {Fd(ends[0]), Fd(ends[1])};
  }

  TestDriver driver;
  std::unique_ptr<cuda::Allocator> allocator = std::move(*cuda::Allocator::open(0));
  Supply supply{*allocator};
};

TEST_F(SupplyTest, WhatComesBackIsServedAgainAndZero) {
  Fd memory = used(kSmall);
  const ino_t first = identity(memory);
  supply.take_back(std::move(memory), kSmall);
  const auto again = make(kSmall);
  ASSERT_TRUE(again);
  EXPECT_EQ(identity(*again), first);
  EXPECT_TRUE(is_zero(*again, kSmall));
}

TEST_F(SupplyTest, WhatIsClearedBeforeIsServedAsItIs) {
  Fd memory = used(kSmall);
  const Fd seen = std::move(*memory.duplicate());
  supply.take_back(std::move(memory), kSmall);
  EXPECT_TRUE(supply.has_uncleared());
  supply.clear_some();
  EXPECT_FALSE(supply.has_uncleared());
  EXPECT_TRUE(is_zero(seen, kSmall));
  EXPECT_EQ(identity(*make(kSmall)), identity(seen));
}

TEST_F(SupplyTest, WhatIsWantedTogetherComesInItsOrder) {
  Fd memory = used(kSmall);
  const ino_t first = identity(memory);
  supply.take_back(std::move(memory), kSmall);
  const Bytes sizes[] = {kLarge, kSmall, Bytes{1}, kSmall};
  const auto made = supply.make(sizes);
  ASSERT_EQ(made.size(), 4u);
  EXPECT_TRUE(made[0] && is_zero(*made[0], kLarge));
  EXPECT_TRUE(made[1] && is_zero(*made[1], kSmall));
  EXPECT_EQ(identity(*made[1]), first);
  EXPECT_FALSE(made[2]) << "no multiple of what the driver makes";
  EXPECT_TRUE(made[3] && is_zero(*made[3], kSmall));
}

TEST_F(SupplyTest, SomeIsClearedAtATime) {
  constexpr size_t kPieces = Supply::kMostAtOnce + 1;
  std::vector<Fd> memory;
  while (memory.size() < kPieces) memory.push_back(used(kSmall));
  for (Fd& each : memory) supply.take_back(std::move(each), kSmall);
  supply.clear_some();
  EXPECT_TRUE(supply.has_uncleared());
  supply.clear_some();
  EXPECT_FALSE(supply.has_uncleared());
  for (size_t i = 0; i < kPieces; ++i) EXPECT_TRUE(is_zero(*make(kSmall), kSmall));
}

TEST_F(SupplyTest, WhatTheGpuFailedToClearIsNobodys) {
  supply.take_back(used(kSmall), kSmall);
  supply.clear_some();
  Fd uncleared = used(kLarge);
  const ino_t dirty = identity(uncleared);
  supply.take_back(std::move(uncleared), kLarge);
  driver.set_fails(true);
  const Bytes sizes[] = {kSmall, kLarge, kSmall};
  const auto made = supply.make(sizes);
  EXPECT_TRUE(made[0]) << "it was zero before";
  EXPECT_FALSE(made[1]) << "what came back";
  EXPECT_FALSE(made[2]) << "made anew";

  driver.set_fails(false);
  const auto later = make(kLarge);
  ASSERT_TRUE(later);
  EXPECT_NE(identity(*later), dirty);
  EXPECT_TRUE(is_zero(*later, kLarge));
}

TEST_F(SupplyTest, WhatCannotBeClearedAheadIsNotKept) {
  supply.take_back(used(kSmall), kSmall);
  driver.set_fails(true);
  supply.clear_some();
  EXPECT_FALSE(supply.has_uncleared());
  driver.set_free(kLarge);
  EXPECT_EQ(*supply.left(), kLarge) << "nothing is kept";
}

TEST_F(SupplyTest, ServedMemoryIsNotServedTwice) {
  supply.take_back(used(kSmall), kSmall);
  const auto first = make(kSmall), second = make(kSmall);
  EXPECT_NE(identity(*first), identity(*second));
}

TEST_F(SupplyTest, WhatCannotBeClearedIsNotServed) {
  auto [reader, writer] = watched();
  supply.take_back(std::move(writer), kSmall);  // no memory
  const auto memory = make(kSmall);
  ASSERT_TRUE(memory);
  EXPECT_TRUE(is_zero(*memory, kSmall));

  auto [idle_reader, idle_writer] = watched();
  supply.take_back(std::move(idle_writer), kSmall);
  supply.clear_some();
  EXPECT_FALSE(supply.has_uncleared());
  pollfd hung_up{idle_reader.get(), 0, 0};
  EXPECT_EQ(::poll(&hung_up, 1, 0), 1);
}

// The driver has space only once it has back what is kept.
TEST_F(SupplyTest, WhatIsKeptGoesToTheDriverWhenThatHasNoMore) {
  auto [reader, writer] = watched();
  supply.take_back(std::move(writer), kLarge);
  driver.set_room(Bytes{});
  std::thread gpu([this, &reader = reader] {
    pollfd hung_up{reader.get(), 0, 0};
    ::poll(&hung_up, 1, 60'000);
    driver.set_room(kSmall);
  });
  const auto memory = make(kSmall);
  gpu.join();
  ASSERT_TRUE(memory) << memory.error().text;
}

TEST_F(SupplyTest, AFullGpuIsAnError) {
  driver.set_room(Bytes{});
  const auto memory = make(kSmall);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, ErrorCode::kOutOfMemory);
}

TEST_F(SupplyTest, WhatIsKeptIsLeft) {
  driver.set_free(kLarge);
  supply.take_back(used(kSmall), kSmall);
  EXPECT_EQ(*supply.left(), kLarge + kSmall);
}

TEST_F(SupplyTest, NoMoreIsKeptThanIsFreeForOthers) {
  std::vector<Fd> memory, seen;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(used(kSmall));
    seen.push_back(std::move(*memory.back().duplicate()));
  }
  for (Fd& each : memory) supply.take_back(std::move(each), kSmall);
  driver.set_free(kSmall + kSmall);
  EXPECT_EQ(*supply.left(), Bytes{5 * kSmall.value}) << "as before: what was given back is free";
  driver.set_free(Bytes{3 * kSmall.value});
  EXPECT_EQ(*supply.left(), Bytes{5 * kSmall.value}) << "the oldest has gone, and no other";
  EXPECT_EQ(identity(*make(kSmall)), identity(seen[2]));
  EXPECT_EQ(identity(*make(kSmall)), identity(seen[1]));
  EXPECT_NE(identity(*make(kSmall)), identity(seen[0]));
}

TEST_F(SupplyTest, NoMoreIsKeptThanHeddledSays) {
  driver.set_free(kLarge + kLarge);
  Fd first = used(kSmall), second = used(kSmall);
  const ino_t newest = identity(second);
  supply.take_back(std::move(first), kSmall);
  supply.take_back(std::move(second), kSmall);
  supply.keep_at_most(kLarge);
  EXPECT_EQ(*supply.left(), Bytes{2 * kLarge.value + 2 * kSmall.value});
  supply.keep_at_most(kSmall);
  EXPECT_EQ(*supply.left(), Bytes{2 * kLarge.value + kSmall.value});
  EXPECT_EQ(identity(*make(kSmall)), newest);
}

}  // namespace
}  // namespace heddle::keeper
