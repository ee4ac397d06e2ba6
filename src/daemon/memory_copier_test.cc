#include "daemon/memory_copier.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "core/clock.h"

namespace heddle::daemon {
namespace {

constexpr Bytes kCopied{16 * kMiB};

struct CopierTest : ::testing::Test {
  CopierTest() {
    for (Fd* each : {&to, &from}) *each = std::move(*create_memfd("test", kCopied));
  }
  static void write(const Fd& memory, uint64_t at, char byte) {
    EXPECT_EQ(::pwrite(memory.get(), &byte, 1, static_cast<off_t>(at)), 1);
  }
  static char byte_at(const Fd& memory, uint64_t at) {
    char byte = 0;
    EXPECT_EQ(::pread(memory.get(), &byte, 1, static_cast<off_t>(at)), 1);
    return byte;
  }
  // Of pages that it has.
  static uint64_t taken(const Fd& memory) {
    struct stat status {};
    EXPECT_EQ(::fstat(memory.get(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }
  // The next that is over.
  CopyAnswered over() {
    for (;;) {
      events.begin_turn();
      if (auto event = events.next()) return std::get<CopyAnswered>(*event);
      EXPECT_TRUE(loop->run_once(std::chrono::seconds(60)));
    }
  }

  MonotonicClock clock;
  std::unique_ptr<EventLoop> loop = std::move(*EventLoop::create(clock));
  EventQueue events{[] {}};
  MemoryCopier copier{*loop, events};
  Fd to, from;
};

TEST_F(CopierTest, CopiesWhatWasWrittenAndTakesNoMemoryForTheRest) {
  const uint64_t written[] = {0, 3 * kMiB + 5, kCopied.value - 1};
  for (const uint64_t at : written) write(from, at, static_cast<char>(at % 100 + 1));
  copier.copy(7, to, from, kCopied);
  const CopyAnswered answer = over();
  EXPECT_EQ(answer.copy, 7u);
  ASSERT_TRUE(answer.status) << answer.status.error().text;
  for (const uint64_t at : written) EXPECT_EQ(byte_at(to, at), static_cast<char>(at % 100 + 1));
  EXPECT_EQ(byte_at(to, 9 * kMiB), 0);
  EXPECT_EQ(taken(to), taken(from));
}

TEST_F(CopierTest, CopiesAreDoneInTheirOrderAndOutliveTheirDescriptors) {
  write(from, 0, 1);
  copier.copy(1, to, from, kCopied);
  Fd third = std::move(*create_memfd("test", kCopied));
  copier.copy(2, third, to, kCopied);
  to = {};
  from = {};
  EXPECT_EQ(over().copy, 1u);
  EXPECT_EQ(over().copy, 2u);
  EXPECT_EQ(byte_at(third, 0), 1);
}

TEST_F(CopierTest, ACancelledOneKeepsNobodyWaiting) {
  for (uint64_t at = 0; at < kCopied.value; at += 4096) write(from, at, 1);
  Fd third = std::move(*create_memfd("test", kCopied));
  for (uint64_t copy = 1; copy <= 50; ++copy) copier.copy(copy, to, from, kCopied);
  for (uint64_t copy = 1; copy <= 50; ++copy) copier.cancel(copy);
  copier.copy(51, third, from, kCopied);
  CopyAnswered answer = over();
  // Those that had begun before they were cancelled: the copying thread does not wait for this one.
  uint64_t begun = 0, last = 0;
  for (; answer.copy != 51; answer = over(), ++begun) EXPECT_GT(answer.copy, std::exchange(last, answer.copy));
  EXPECT_LT(begun, 50u);
  EXPECT_TRUE(answer.status);
  EXPECT_EQ(byte_at(third, kCopied.value - 4096), 1);
}

TEST_F(CopierTest, WhatCannotBeWrittenIsTold) {
  write(from, 0, 1);
  const Fd read_only(::open(("/proc/self/fd/" + std::to_string(to.get())).c_str(), O_RDONLY));
  copier.copy(1, read_only, from, kCopied);
  const CopyAnswered answer = over();
  ASSERT_FALSE(answer.status);
  EXPECT_NE(answer.status.error().text.find("cannot write"), std::string::npos) << answer.status.error().text;
}

}  // namespace
}  // namespace heddle::daemon
