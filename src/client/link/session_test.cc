#include "client/link/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "client/testing/fake_heddled.h"

namespace heddle::client {
namespace {

using testing::FakeHeddled;

// A process's session over a scripted heddled, without CUDA.
class SessionTest : public ::testing::Test {
 protected:
  void open(FakeHeddled& heddled) {
    auto opened = Session::open(*SessionSettings::from_environment());
    ASSERT_TRUE(opened) << opened.error().text;
    session_ = std::move(*opened);
    ASSERT_TRUE(session_->open_device(0));
    heddled.hold_memory();
  }
  // Asks for memory that heddled answers when it likes.
  std::future<Result<uint64_t>> ask_for_memory(uint64_t piece) {
    return std::async(std::launch::async, [this, piece] {
      Segment segment;
      segment.address = session_->window().base + piece * kSegmentBytes;
      segment.bytes = kSegmentBytes;
      return session_->declare_segment(0, segment, true);
    });
  }
  static void hears(FakeHeddled& heddled, const std::string& entry, size_t times = 1) {
    ASSERT_TRUE(FakeHeddled::eventually([&] { return heddled.count(entry) == times; })) << entry;
  }
  uint64_t host_base() const { return session_->window().base + session_->window().device_bytes; }
  static bool is_over(std::future<Result<uint64_t>>& asked) {
    return asked.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::unique_ptr<Session> session_;
};

TEST(SessionSettings, RefuseAnUnknownPlaceForManagedMemory) {
  ::setenv("HEDDLE_MANAGED", "nowhere", 1);
  const auto settings = SessionSettings::from_environment();
  ::unsetenv("HEDDLE_MANAGED");
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().text, "HEDDLE_MANAGED is 'nowhere': managed memory lives on the host or device");
}

TEST_F(SessionTest, AThreadThatWaitsForMemoryKeepsNobodyFromAsking) {
  FakeHeddled heddled({});
  open(heddled);
  auto waiting = ask_for_memory(0);
  hears(heddled, "segment 1 2097152");
  const auto info = session_->memory_info(0);
  ASSERT_TRUE(info) << info.error().text;
  EXPECT_EQ(info->budget_bytes, 64 * kMiB);
  const auto pinned = session_->map_host_segment(0, host_base(), kSegmentBytes);
  ASSERT_TRUE(pinned) << pinned.error().text;
  EXPECT_EQ(*pinned, 2u);
  EXPECT_TRUE(session_->look());
  EXPECT_FALSE(is_over(waiting));
  heddled.answer_memory();
  EXPECT_EQ(*waiting.get(), 1u);
}

TEST_F(SessionTest, AllThatWaitAskARestartedHeddledAgain) {
  FakeHeddled heddled({});
  open(heddled);
  std::vector<std::future<Result<uint64_t>>> waiting;
  for (uint64_t piece = 0; piece < 4; ++piece) {
    waiting.push_back(ask_for_memory(piece));
    hears(heddled, stringf("segment %lu 2097152", piece + 1));
  }
  ASSERT_TRUE(session_->map_host_segment(0, host_base(), kSegmentBytes));  // a later one, which heddled has
  heddled.restart();
  for (uint64_t piece = 0; piece < 4; ++piece) hears(heddled, stringf("segment %lu 2097152", piece + 1), 2);
  EXPECT_EQ(heddled.count("resume"), 1u);
  heddled.answer_memory();
  for (uint64_t piece = 0; piece < 4; ++piece) EXPECT_EQ(*waiting[piece].get(), piece + 1);
}

TEST_F(SessionTest, AllThatWaitHearThatHeddledIsGoneForGood) {
  std::vector<std::future<Result<uint64_t>>> waiting;
  {
    FakeHeddled heddled({});
    ::setenv("HEDDLE_LOST_AFTER", "200ms", 1);
    open(heddled);
    for (uint64_t piece = 0; piece < 4; ++piece) waiting.push_back(ask_for_memory(piece));
    for (uint64_t piece = 0; piece < 4; ++piece) hears(heddled, stringf("segment %lu 2097152", piece + 1));
  }
  for (auto& each : waiting) {
    const auto answer = each.get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kPeerDied);
    EXPECT_THAT(answer.error().text, ::testing::HasSubstr("is gone for more than"));
  }
  EXPECT_EQ(session_->memory_info(0).error().code, ErrorCode::kPeerDied);
  EXPECT_FALSE(session_->look());
}

TEST_F(SessionTest, ThreadsThatDeclareAndAskSideBySide) {
  FakeHeddled heddled({});
  open(heddled);
  heddled.answer_memory();
  std::vector<std::future<bool>> threads;
  for (uint64_t thread = 0; thread < 6; ++thread) {
    threads.push_back(std::async(std::launch::async, [this, thread] {
      bool well = true;
      for (uint64_t round = 0; round < 50 && well; ++round) {
        Segment segment;
        segment.address = session_->window().base + (thread * 50 + round) * kSegmentBytes;
        segment.bytes = kSegmentBytes;
        const auto number = session_->declare_segment(0, segment, round % 2 == 0);
        well = number && session_->memory_info(0) && session_->look();
        if (number && round % 3 == 0) session_->forget_segment(*number);
      }
      return well;
    }));
  }
  for (int restarts = 0; restarts < 3; ++restarts) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    heddled.restart();
  }
  for (auto& thread : threads) EXPECT_TRUE(thread.get());
}

}  // namespace
}  // namespace heddle::client
