// This machine's memory that a keeper makes and maps: swap space, and what programs run with.

#include <fcntl.h>
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include "core/fd.h"
#include "keeper/keeper_fixture.h"
#include "keeper/test_driver.h"
#include "protocol/own_messages.h"

namespace heddle::keeper {
namespace {

constexpr uint64_t kNumber = 7;

struct KeeperSwapSpace : KeeperCopies {
  // Number 0: for a program to run with.
  Fd on_host(uint64_t number) {
    EXPECT_TRUE(heddled.send(protocol::MakeMemory{kSize, 1, 0, number}));
    const auto made = next<protocol::MemoryMade>();
    EXPECT_EQ(made.error, 0u) << protocol::get_text(made.text);
    EXPECT_EQ(made.bytes, kSize);
    if (descriptors.size() != 1) return {};
    return std::move(descriptors[0]);
  }
  bool has_mapped(const Fd& memory) const {
    const std::string inode = " " + std::to_string(identity(memory)) + " ";
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(inode) != std::string::npos) return true;
    }
    return false;
  }
  // All of it, from `from` to `to`.
  protocol::CopyMemory whole(uint64_t to_mapping, uint64_t from_mapping = 0) const {
    protocol::CopyMemory copy = wanted(++last_copy, {}, {}, kSize);
    copy.to_mapping = to_mapping;
    copy.from_mapping = from_mapping;
    return copy;
  }
  void unmap(uint64_t number) {
    EXPECT_TRUE(heddled.send(protocol::UnmapMemory{number}));
    ask(2 * kMiB);  // answered behind it
  }
  void expect_received() { EXPECT_EQ(received().back(), kSize / 4 - 1); }

  mutable uint64_t last_copy = 0;
};

// As when a program's memory is swapped out and in.
TEST_F(KeeperSwapSpace, TakesACopyAndGivesItBack) {
  Fd device = std::exchange(to, on_host(kNumber));
  EXPECT_EQ(copied(whole(kNumber)).error, 0u);
  from = std::exchange(to, std::move(device));
  EXPECT_EQ(copied(whole(0, kNumber)).error, 0u);
  expect_received();
}

TEST_F(KeeperSwapSpace, StaysMappedUntilItIsGivenUp) {
  to = on_host(kNumber);
  EXPECT_TRUE(has_mapped(to));
  EXPECT_EQ(copied(whole(kNumber)).error, 0u);
  EXPECT_TRUE(has_mapped(to));
  EXPECT_FALSE(has_mapped(from)) << "device memory is a program's, and mapped for the copy alone";
  unmap(kNumber);
  EXPECT_FALSE(has_mapped(to));
  expect_received();
  unmap(kNumber);  // once more
}

// What lies behind the descriptor does not matter then.
TEST_F(KeeperSwapSpace, IsNotMappedAnewForACopy) {
  Fd made = on_host(kNumber);
  to = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(copied(whole(kNumber)).error, 0u);
  EXPECT_NE(copied(whole(kNumber + 1)).error, 0u) << "of no memory";
  to = std::move(made);
  expect_received();
}

// As one that was started after the memory was made.
TEST_F(KeeperSwapSpace, ThatAKeeperDoesNotKnowIsMappedForItsFirstCopyAndStays) {
  EXPECT_FALSE(has_mapped(to));
  EXPECT_EQ(copied(whole(kNumber)).error, 0u);
  EXPECT_TRUE(has_mapped(to));
  expect_received();
  unmap(kNumber);
  EXPECT_FALSE(has_mapped(to));
}

TEST_F(KeeperSwapSpace, WithoutANumberIsMappedForTheCopyAlone) {
  EXPECT_EQ(copied(whole(0)).error, 0u);
  EXPECT_FALSE(has_mapped(to));
  expect_received();
}

TEST_F(KeeperSwapSpace, OfAnotherSizeIsRefusedAndTheNextIsServed) {
  to = on_host(kNumber);
  protocol::CopyMemory larger = whole(kNumber);
  larger.width = kSize / 2;
  larger.to_bytes = 2 * kSize;
  larger.from_bytes = kSize;
  const int lent[] = {to.get(), from.get()};
  ASSERT_TRUE(heddled.send(larger, lent));
  const auto refused = next<protocol::MemoryCopied>();
  EXPECT_EQ(refused.error, static_cast<uint32_t>(ErrorCode::kInvalidArgument));
  EXPECT_THAT(protocol::get_text(refused.text), testing::HasSubstr("mapping 7"));
  EXPECT_EQ(copied(whole(kNumber)).error, 0u);
  expect_received();
}

TEST_F(KeeperSwapSpace, ThatIsGivenUpWhileItIsCopiedLastsAsLongAsTheCopy) {
  to = on_host(kNumber);
  ::kill(pid, SIGSTOP);  // until both are asked for
  send(whole(kNumber));
  ASSERT_TRUE(heddled.send(protocol::UnmapMemory{kNumber}));
  ::kill(pid, SIGCONT);
  EXPECT_EQ(next<protocol::MemoryCopied>().error, 0u);
  EXPECT_FALSE(has_mapped(to));
  expect_received();
}

// The driver for tests leaves other bytes in what it makes.
TEST_F(KeeperSwapSpace, IsNotClearedButWhatProgramsRunWithIs) {
  const Fd space = on_host(kNumber);
  EXPECT_FALSE(is_zero(space, kSize)) << "it is written whole, and clearing it takes time";
  const Fd to_run_with = on_host(0);
  EXPECT_TRUE(is_zero(to_run_with, kSize));
  EXPECT_FALSE(has_mapped(to_run_with));
}

TEST_F(KeeperSwapSpace, ThatCannotBeClearedIsNoProgramsMemory) {
  driver.set_fails(true);
  EXPECT_TRUE(heddled.send(protocol::MakeMemory{kSize, 1}));
  EXPECT_NE(next<protocol::MemoryMade>().error, 0u);
  EXPECT_TRUE(descriptors.empty());
}

}  // namespace
}  // namespace heddle::keeper
