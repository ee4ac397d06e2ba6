// The real keeper over the driver that tests bring.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/fd.h"
#include "keeper/keeper_fixture.h"
#include "keeper/test_driver.h"
#include "protocol/own_messages.h"

namespace heddle::keeper {
namespace {

TEST_F(Keeper, MemoryIsZeroAndComesAsADescriptor) {
  const auto answer = ask(4 * kMiB);
  EXPECT_EQ(answer.error, 0u) << protocol::get_text(answer.text);
  ASSERT_EQ(descriptors.size(), 1u);
  const auto mapping = map_shared(descriptors[0], Bytes{4 * kMiB});
  ASSERT_TRUE(mapping);
  const auto* bytes = static_cast<const char*>(mapping->data());
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(bytes[4 * kMiB - 1], 0);
}

TEST_F(Keeper, MemoryOutlivesItsKeeper) {
  ask(2 * kMiB);
  ASSERT_EQ(descriptors.size(), 1u);
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_TRUE(map_shared(descriptors[0], Bytes{2 * kMiB}));
}

TEST_F(Keeper, MoreThanTheGpuHasIsRefusedAndTheNextIsServed) {
  const auto answer = ask(1024 * kGiB);
  EXPECT_EQ(answer.error, static_cast<uint32_t>(ErrorCode::kOutOfMemory));
  EXPECT_THAT(protocol::get_text(answer.text), testing::HasSubstr("1099511627776"));
  EXPECT_EQ(ask(2 * kMiB).error, 0u);
}

TEST_F(Keeper, SaysAgainAndAgainWhatIsLeft) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next<protocol::MemoryLeft>().bytes, 512 * kMiB);  // the driver for tests has it
}

// More than are made together, and something else between them.
TEST_F(Keeper, RequestsThatWaitTogetherAreAnsweredInTheirOrder) {
  constexpr int kRequests = 70, kReturned = 40;
  const auto bytes = [](int request) { return (request % 3 + 1) * 2 * kMiB; };
  const Fd memory = used(8 * kMiB);
  ::kill(pid, SIGSTOP);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(heddled.send(protocol::MakeMemory{bytes(i)}));
    if (i == kReturned) give_back(memory, 8 * kMiB);
  }
  ASSERT_TRUE(heddled.send(protocol::MakeMemory{8 * kMiB}));
  ::kill(pid, SIGCONT);
  for (int i = 0; i < kRequests; ++i) {
    const auto made = next<protocol::MemoryMade>();
    ASSERT_EQ(made.error, 0u) << protocol::get_text(made.text);
    EXPECT_EQ(made.bytes, bytes(i));
    ASSERT_EQ(descriptors.size(), 1u);
    EXPECT_TRUE(is_zero(descriptors[0], made.bytes));
  }
  EXPECT_EQ(next<protocol::MemoryMade>().bytes, 8 * kMiB);
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_EQ(identity(descriptors[0]), identity(memory)) << "what came back in between";
  EXPECT_TRUE(is_zero(descriptors[0], 8 * kMiB));
}

TEST_F(Keeper, MemoryThatComesBackIsServedAgainAndZero) {
  const Fd memory = used(4 * kMiB);
  give_back(memory, 4 * kMiB);
  EXPECT_EQ(ask(4 * kMiB).error, 0u);
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_EQ(identity(descriptors[0]), identity(memory));
  EXPECT_TRUE(is_zero(descriptors[0], 4 * kMiB));
}

TEST_F(Keeper, MemoryThatComesBackIsClearedBeforeAnybodyAsks) {
  const Fd memory = used(4 * kMiB);
  give_back(memory, 4 * kMiB);
  // Between two words there is nothing else to do.
  for (int i = 0; i < 2; ++i) next<protocol::MemoryLeft>();
  EXPECT_TRUE(is_zero(memory, 4 * kMiB));
  ask(4 * kMiB);
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_EQ(identity(descriptors[0]), identity(memory));
}

TEST_F(Keeper, MemoryThatComesBackIsLeft) {
  driver.set_free(Bytes{64 * kMiB});
  give_back(used(4 * kMiB), 4 * kMiB);
  next<protocol::MemoryLeft>();  // may have been on its way
  EXPECT_EQ(next<protocol::MemoryLeft>().bytes, 68 * kMiB);
}

TEST_F(Keeper, MemoryThatComesBackIsTheDriversWhereLittleIsFree) {
  const Fd memory = used(4 * kMiB);
  driver.set_free(Bytes{});
  give_back(memory, 4 * kMiB);
  for (int i = 0; i < 2; ++i) next<protocol::MemoryLeft>();
  EXPECT_EQ(ask(4 * kMiB).error, 0u);
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_NE(identity(descriptors[0]), identity(memory));
}

TEST_F(Keeper, MemoryThatComesBackIsTheDriversWhereHeddledSaysSo) {
  const Fd memory = used(4 * kMiB);
  give_back(memory, 4 * kMiB);
  EXPECT_TRUE(heddled.send(protocol::KeepAtMost{2 * kMiB}));
  EXPECT_EQ(ask(4 * kMiB).error, 0u);
  ASSERT_EQ(descriptors.size(), 1u);
  EXPECT_NE(identity(descriptors[0]), identity(memory));
}

TEST_F(Keeper, EndsAtMemoryThatComesBackWithoutADescriptor) {
  ASSERT_TRUE(heddled.send(protocol::TakeBack{2 * kMiB}));
  EXPECT_EQ(exit_status(), 1);
}

TEST_F(Keeper, EndsAtMemoryOfAnOddSizeThatComesBack) {
  give_back(used(2 * kMiB), 1000);
  EXPECT_EQ(exit_status(), 1);
}

TEST_F(Keeper, OddSizesAreRefused) {
  EXPECT_EQ(ask(1000).error, static_cast<uint32_t>(ErrorCode::kInvalidArgument));
}

TEST_F(KeeperCopies, AreOfTheRightBytes) {
  const auto answer = copied(wanted(7, {4096}, {8192}, kMiB));
  EXPECT_EQ(answer.error, 0u) << protocol::get_text(answer.text);
  EXPECT_EQ(answer.copy, 7u);
  const auto numbers = received();
  EXPECT_EQ(numbers[1023], 0u);
  EXPECT_EQ(numbers[1024], 2048u);
  EXPECT_EQ(numbers[1024 + kMiB / 4 - 1], 2048 + kMiB / 4 - 1);
  EXPECT_EQ(numbers[1024 + kMiB / 4], 0u);
}

TEST_F(KeeperCopies, HaveAShape) {
  const auto answer = copied(wanted(1, {0, 64, 1024}, {128, 256, 4096}, 32, 4, 3));
  EXPECT_EQ(answer.error, 0u) << protocol::get_text(answer.text);
  std::vector<uint32_t> expected(kSize / 4);
  for (uint32_t z = 0; z < 3; ++z) {
    for (uint32_t y = 0; y < 4; ++y) {
      for (uint32_t x = 0; x < 8; ++x) expected[z * 256 + y * 16 + x] = 32 + z * 1024 + y * 64 + x;
    }
  }
  EXPECT_EQ(received(), expected);
}

TEST_F(KeeperCopies, OutsideOfTheMemoryAreRefusedAndTheNextIsServed) {
  const protocol::CopyMemory wrong[] = {wanted(1, {kSize - 4}, {0}, 8),         wanted(2, {0}, {kSize}, 1),
                                        wanted(3, {0, ~0ull / 2}, {0}, 8, 4),   wanted(4, {~0ull}, {0}, 8),
                                        wanted(5, {0}, {0, 0, kSize}, 8, 1, 2), wanted(6, {0}, {0}, 8, 0)};
  for (const protocol::CopyMemory& each : wrong) {
    const auto answer = copied(each);
    EXPECT_EQ(answer.copy, each.copy);
    EXPECT_EQ(answer.error, static_cast<uint32_t>(ErrorCode::kInvalidArgument)) << each.copy;
  }
  EXPECT_EQ(received(), std::vector<uint32_t>(kSize / 4));
  EXPECT_EQ(copied(wanted(7, {0}, {0}, 8)).error, 0u);
}

TEST_F(KeeperCopies, OfNoMemoryAreRefused) {
  ASSERT_TRUE(heddled.send(wanted(1, {0}, {0}, 8)));
  EXPECT_EQ(next<protocol::MemoryCopied>().error, static_cast<uint32_t>(ErrorCode::kInvalidArgument));
}

// Parts of a row each: thousands of them, and the driver for tests waits for each.
TEST_F(KeeperCopies, DoNotKeepMemoryWaiting) {
  const auto long_one = wanted(1, {0, 4, 8}, {0, 4, 8}, 2, 2, kSize / 8);
  ::kill(pid, SIGSTOP);  // until both are asked for
  send(long_one);
  ASSERT_TRUE(heddled.send(protocol::MakeMemory{2 * kMiB}));
  ::kill(pid, SIGCONT);
  protocol::MessageType first{};
  while (first != protocol::MessageType::kMemoryMade && first != protocol::MessageType::kMemoryCopied) {
    const auto packet = heddled.receive_within(kPatience);
    ASSERT_TRUE(packet && *packet);
    first = (*packet)->type;
  }
  EXPECT_EQ(first, protocol::MessageType::kMemoryMade);
}

TEST_F(KeeperCopies, TakeTurns) {
  ::kill(pid, SIGSTOP);
  send(wanted(1, {0, 4, 8}, {0, 4, 8}, 2, 2, 100));
  send(wanted(2, {kMiB}, {kMiB}, 8));
  ::kill(pid, SIGCONT);
  EXPECT_EQ(next<protocol::MemoryCopied>().copy, 2u);
  EXPECT_EQ(next<protocol::MemoryCopied>().copy, 1u);
}

TEST_F(KeeperCopies, AreCancelled) {
  ::kill(pid, SIGSTOP);
  send(wanted(1, {0, 4, 8}, {0, 4, 8}, 2, 2, kSize / 8));
  ASSERT_TRUE(heddled.send(protocol::CancelCopy{1}));
  ASSERT_TRUE(heddled.send(protocol::CancelCopy{2}));  // of none
  ::kill(pid, SIGCONT);
  const auto answer = next<protocol::MemoryCopied>();
  EXPECT_EQ(answer.copy, 1u);
  EXPECT_EQ(answer.error, static_cast<uint32_t>(ErrorCode::kCancelled));
  EXPECT_EQ(copied(wanted(3, {0}, {0}, 8)).error, 0u);
}

TEST_F(Keeper, EndsAtAMessageThatIsNotForIt) {
  ASSERT_TRUE(heddled.send(protocol::Shutdown{}));
  EXPECT_EQ(exit_status(), 1);
}

TEST_F(Keeper, EndsWithHeddled) {
  ask(2 * kMiB);
  heddled.close();
  EXPECT_EQ(exit_status(), 0);
}

TEST_F(Keeper, EndsWithHeddledWhileItIsAboutToSpeak) {
  ask(2 * kMiB);
  ::shutdown(heddled.get(), SHUT_RD);  // as a heddled that ends between the keeper's listening and its next word
  EXPECT_EQ(exit_status(), 0);
}

TEST_F(Keeper, HasNoPrivilegesAndGivesNobodyItsDescriptors) {
  ask(2 * kMiB);
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::ostringstream text;
  text << status.rdbuf();
  EXPECT_THAT(text.str(), testing::HasSubstr("CapEff:\t0000000000000000\n"));
  EXPECT_THAT(text.str(), testing::HasSubstr("CapPrm:\t0000000000000000\n"));
  EXPECT_THAT(text.str(), testing::HasSubstr("NoNewPrivs:\t1\n"));
  if (::getuid() != 0) {  // root may open everybody's
    EXPECT_EQ(::open(("/proc/" + std::to_string(pid) + "/fd").c_str(), O_RDONLY | O_DIRECTORY), -1);
  }
}

std::string output_of(const std::string& arguments) {
  ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
  std::FILE* output = ::popen((HEDDLE_KEEPER_PROGRAM " " + arguments + " 2>&1").c_str(), "r");
  std::string text;
  char piece[512];
  while (std::fgets(piece, sizeof piece, output)) text += piece;
  EXPECT_EQ(::pclose(output), 0) << text;
  return text;
}

TEST(KeeperList, HasALineForEachGpu) {
  const std::string text = output_of("--list");
  EXPECT_THAT(text, testing::StartsWith("uuid=GPU-5e5e5e5e-5e5e-5e5e-5e5e-5e5e5e5e5e5e\tpci=0000:5e:00.0\t"));
  EXPECT_THAT(text, testing::HasSubstr("\tmemory=1073741824\t"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace heddle::keeper
