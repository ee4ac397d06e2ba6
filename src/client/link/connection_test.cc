#include "client/link/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "protocol/socket.h"

namespace heddle::client {
namespace {

using namespace protocol;
using ::testing::HasSubstr;

constexpr Duration kForever(-1), kPatience = std::chrono::seconds(20);

// A connection, and heddled's end of it by hand.
class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() : ConnectionTest(*socket_pair()) {}

  // One whole request, as a thread of the program makes it. What others were answered with is `budget_bytes`.
  Result<MemoryAnswer> ask(Duration limit = kForever) {
    std::optional<Connection::Request> request;
    {
      const std::lock_guard lock(sending_);
      request.emplace(*connection_);
      HEDDLE_TRY(connection_->send(MemoryInfo{request->number()}));
    }
    auto answer = request->wait(limit);
    if (!answer) return tl::unexpected(std::move(answer).error());
    if (answer->type != MessageType::kMemoryAnswer) return fail(ErrorCode::kProtocol, "another's answer");
    return answer->as<MemoryAnswer>();
  }
  std::future<Result<MemoryAnswer>> ask_later(Duration limit = kForever) {
    return std::async(std::launch::async, [this, limit] { return ask(limit); });
  }
  // The number of the next request that heddled hears.
  uint64_t heard() {
    const auto asked = heddled_.expect<MemoryInfo>(kPatience);
    EXPECT_TRUE(asked) << asked.error().text;
    return asked ? asked->request : 0;
  }
  void answer(uint64_t request, uint64_t budget = 0) { EXPECT_TRUE(heddled_.send(MemoryAnswer{request, budget})); }

  std::mutex sending_;
  Socket heddled_;
  std::unique_ptr<Connection> connection_;

 private:
  explicit ConnectionTest(std::pair<Socket, Socket> ends)
      : heddled_(std::move(ends.first)), connection_(std::make_unique<Connection>(std::move(ends.second), 0)) {}
};

TEST_F(ConnectionTest, AnswersComeInAnyOrder) {
  auto first = ask_later();
  const uint64_t one = heard();
  auto second = ask_later();
  const uint64_t two = heard();
  answer(two, 22);
  EXPECT_EQ(second.get()->budget_bytes, 22u) << "while the first still waits, and reads for both";
  answer(one, 11);
  EXPECT_EQ(first.get()->budget_bytes, 11u);
}

TEST_F(ConnectionTest, WhoHasItsAnswerLeavesTheReadingToAnother) {
  auto first = ask_later();
  const uint64_t one = heard();
  auto second = ask_later();
  const uint64_t two = heard();
  answer(one, 11);
  EXPECT_EQ(first.get()->budget_bytes, 11u);
  answer(two, 22);
  EXPECT_EQ(second.get()->budget_bytes, 22u);
}

TEST_F(ConnectionTest, WhoGivesUpWhileItReadsLeavesTheReadingToAnother) {
  auto first = ask_later(std::chrono::milliseconds(100));
  (void)heard();
  auto second = ask_later();
  const uint64_t two = heard();
  EXPECT_EQ(first.get().error().code, ErrorCode::kTimeout);
  answer(two, 22);
  EXPECT_EQ(second.get()->budget_bytes, 22u);
}

TEST_F(ConnectionTest, NumbersRiseOverConnections) {
  EXPECT_EQ(Connection::Request(*connection_).number(), 1u);
  EXPECT_EQ(Connection::Request(*connection_).number(), 2u);
  auto ends = *socket_pair();
  Connection next(std::move(ends.first), connection_->last_request());
  EXPECT_EQ(Connection::Request(next).number(), 3u);
}

TEST_F(ConnectionTest, AnswersToTheConnectionBeforeArePassedOver) {
  auto ends = *socket_pair();
  heddled_ = std::move(ends.first);
  connection_ = std::make_unique<Connection>(std::move(ends.second), 5);
  auto asked = ask_later();
  EXPECT_EQ(heard(), 6u);
  answer(4, 44);
  answer(6, 66);
  EXPECT_EQ(asked.get()->budget_bytes, 66u);
  EXPECT_TRUE(connection_->look());
}

TEST_F(ConnectionTest, TheEndIsAllThatWaitsErrorAndAllThatComeLaters) {
  std::vector<std::future<Result<MemoryAnswer>>> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(ask_later());
  for (int i = 0; i < 5; ++i) (void)heard();
  heddled_.close();
  for (auto& each : waiting) EXPECT_EQ(each.get().error().code, ErrorCode::kPeerDied);
  EXPECT_EQ(connection_->look().error().code, ErrorCode::kPeerDied);
  EXPECT_EQ(ask().error().code, ErrorCode::kPeerDied);
}

TEST_F(ConnectionTest, IsEndedFromThisSideThoughSomebodyReads) {
  auto asked = ask_later();
  (void)heard();
  connection_->end({ErrorCode::kTimeout, "enough"});
  EXPECT_EQ(asked.get().error().text, "enough");
  EXPECT_EQ(heddled_.receive().error().code, ErrorCode::kPeerDied);
}

TEST_F(ConnectionTest, LooksWithoutWaiting) {
  EXPECT_TRUE(connection_->look());
  auto asked = ask_later();
  const uint64_t number = heard();
  EXPECT_TRUE(connection_->look()) << "somebody reads";
  answer(number);
  EXPECT_TRUE(asked.get());
}

struct Lie {
  const char* name;
  void (*tell)(Socket& heddled, uint64_t asked);
  ErrorCode code;
  const char* text;
};

class LyingHeddled : public ConnectionTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(LyingHeddled, EndsTheConnectionForAll) {
  auto first = ask_later(), second = ask_later();
  const uint64_t one = heard();
  (void)heard();
  GetParam().tell(heddled_, one);
  for (auto* each : {&first, &second}) {
    const auto answer = each->get();
    if (answer) continue;  // it was answered before the lie
    EXPECT_EQ(answer.error().code, GetParam().code);
    EXPECT_THAT(answer.error().text, HasSubstr(GetParam().text));
  }
  EXPECT_EQ(connection_->look().error().code, GetParam().code);
}

const Lie kLies[] = {
    {"NoNumber", [](Socket& heddled, uint64_t) { (void)heddled.send(MemoryAnswer{0}); }, ErrorCode::kProtocol,
     "request 0, for which nobody waits"},
    {"ANumberThatNobodyHas", [](Socket& heddled, uint64_t) { (void)heddled.send(MemoryAnswer{77}); },
     ErrorCode::kProtocol, "request 77, for which nobody waits"},
    {"ANumberTwice",
     [](Socket& heddled, uint64_t asked) {
       (void)heddled.send(MemoryAnswer{asked});
       (void)heddled.send(MemoryAnswer{asked});
     },
     ErrorCode::kProtocol, "for which nobody waits"},
    {"WhatIsNoAnswer", [](Socket& heddled, uint64_t) { (void)heddled.send(Quit{}); }, ErrorCode::kProtocol,
     "answers nothing"},
    {"Garbage", [](Socket& heddled, uint64_t) { (void)::send(heddled.get(), "garbage", 7, 0); }, ErrorCode::kProtocol,
     "cut or too short"},
    {"ARefusalOfAll",
     [](Socket& heddled, uint64_t) {
       Refused refused;
       set_text(refused.text, "go away");
       (void)heddled.send(refused);
     },
     ErrorCode::kPermission, "go away"},
};
INSTANTIATE_TEST_SUITE_P(Connection, LyingHeddled, ::testing::ValuesIn(kLies),
                         [](const auto& lie) { return lie.param.name; });

// heddled answers in an order of its own, with descriptors beside some; each thread gets what is its.
TEST_F(ConnectionTest, ManyThreadsGetEachItsOwn) {
  constexpr int kThreads = 8, kRounds = 300;
  std::thread heddled([this] {
    std::mt19937 random(7);
    std::vector<uint64_t> open;
    for (int left = kThreads * kRounds; left > 0 || !open.empty();) {
      auto asked = heddled_.receive_within(open.empty() ? kPatience : Duration{});
      ASSERT_TRUE(asked) << asked.error().text;
      if (*asked) {
        open.push_back(*request_of(**asked));
        --left;
        continue;
      }
      std::swap(open[random() % open.size()], open.back());
      answer(open.back(), open.back() * 3);
      open.pop_back();
    }
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::optional<Connection::Request> request;
        {
          const std::lock_guard lock(sending_);
          request.emplace(*connection_);
          if (!connection_->send(MemoryInfo{request->number()})) ++wrong;
        }
        if (round % 16 == 0 && !connection_->look()) ++wrong;
        const auto answer = request->wait(round % 2 == 0 ? kForever : kPatience);
        if (!answer || answer->as<MemoryAnswer>().budget_bytes != request->number() * 3) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  heddled.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace heddle::client
