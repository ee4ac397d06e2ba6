#include "daemon/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/connection.h"

namespace heddle::daemon {
namespace {

using protocol::OpenDevice;
using protocol::Quit;

class EventLoopTest : public ::testing::Test {
 protected:
  void run_until(const std::function<bool()>& condition) {
    for (int rounds = 0; rounds < 100000 && !condition(); ++rounds) ASSERT_TRUE(loop_->run_once(Duration{}));
    EXPECT_TRUE(condition());
  }
  ManualClock clock_;
  std::unique_ptr<EventLoop> loop_ = *EventLoop::create(clock_);
};

TEST_F(EventLoopTest, TimersRunInOrderOfTheirTimes) {
  std::string order;
  auto second = loop_->after(std::chrono::seconds(2), [&] { order += "b"; });
  auto first = loop_->after(std::chrono::seconds(1), [&] { order += "a"; });
  auto never = loop_->after(std::chrono::seconds(1), [&] { order += "x"; });
  never.reset();
  ASSERT_TRUE(loop_->run_once(Duration{}));
  EXPECT_EQ(order, "");
  clock_.advance(std::chrono::seconds(2));
  ASSERT_TRUE(loop_->run_once(Duration{}));
  EXPECT_EQ(order, "ab");
}

TEST_F(EventLoopTest, ATimerMayReplaceItself) {
  int count = 0;
  EventLoop::Timer timer;
  std::function<void()> again = [&] {
    if (++count < 3) timer = loop_->after(Duration{}, again);
  };
  timer = loop_->after(Duration{}, again);
  run_until([&] { return count == 3; });
}

TEST_F(EventLoopTest, AHandlerMayRemoveAnothersWatchInTheSameRound) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd read_end(ends[0]), write_end(ends[1]);
  const Fd copy = *read_end.duplicate();
  int called = 0;
  EventLoop::Watch first, second;
  first = *loop_->watch(read_end.get(), EPOLLIN, [&](uint32_t) {
    ++called;
    first.reset();
    second.reset();
  });
  second = *loop_->watch(copy.get(), EPOLLIN, [&](uint32_t) {
    ++called;
    first.reset();
    second.reset();
  });
  ASSERT_EQ(::write(write_end.get(), "x", 1), 1);
  ASSERT_TRUE(loop_->run_once(Duration{}));
  ASSERT_TRUE(loop_->run_once(Duration{}));
  EXPECT_EQ(called, 1);
}

TEST_F(EventLoopTest, DeferredWorkRunsAtTheEndOfTheRoundEvenWhenItDefers) {
  std::string order;
  loop_->defer([&] {
    order += "a";
    loop_->defer([&] { order += "b"; });
  });
  ASSERT_TRUE(loop_->run_once(std::chrono::hours(1)));
  EXPECT_EQ(order, "ab");
}

// Advances by `by` at each look, as if the process were stopped between any two of them.
struct StoppedClock : Clock {
  TimePoint now() const override { return TimePoint{} + by * ++looks; }
  Duration by{};
  mutable int looks = 0;
};

TEST(Standstill, IsNoticedByTheLoopThatSleptThroughIt) {
  StoppedClock clock;
  const auto loop = *EventLoop::create(clock);
  clock.by = EventLoop::kStoodStill;
  ASSERT_TRUE(loop->run_once(Duration{}));
  EXPECT_EQ(loop->awake_since(), TimePoint{}) << "a busy machine";
  clock.by = EventLoop::kStoodStill + Duration{1};
  const TimePoint before = clock.now();
  ASSERT_TRUE(loop->run_once(Duration{}));
  EXPECT_GT(loop->awake_since(), before);
}

class ConnectionTest : public EventLoopTest {
 protected:
  void SetUp() override {
    auto ends = *protocol::socket_pair();
    peer_ = std::move(ends.second);
    connection_ = std::make_unique<Connection>(*loop_, std::move(ends.first));
    ASSERT_TRUE(connection_->start({[&](protocol::Packet packet) { packets_.push_back(std::move(packet)); },
                                    [&](const Error& error) { closed_.push_back(error); }}));
  }
  protocol::Socket peer_;
  std::unique_ptr<Connection> connection_;
  std::vector<protocol::Packet> packets_;
  std::vector<Error> closed_;
};

TEST_F(ConnectionTest, ASlowPeerGetsEverythingInOrderWithDescriptors) {
  constexpr uint32_t kCount = 2000;  // more than the kernel queues
  const Fd memory = *create_memfd("test", Bytes{4096});
  for (uint32_t i = 0; i < kCount; ++i) connection_->send(OpenDevice{0, i}, memory);
  EXPECT_GT(connection_->backlog(), 0u);
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(loop_->run_once(Duration{}));
    std::vector<Fd> descriptors;
    const auto got = peer_.expect<OpenDevice>(std::chrono::seconds(1), &descriptors);
    ASSERT_TRUE(got) << got.error().text;
    EXPECT_EQ(got->virtual_device, i);
    EXPECT_EQ(descriptors.size(), 1u);
  }
}

TEST_F(ConnectionTest, APeerThatNeverReadsIsLost) {
  for (int i = 0; i < 30000 && closed_.empty(); ++i) connection_->send(Quit{});
  run_until([&] { return !closed_.empty(); });
  EXPECT_EQ(closed_[0].code, ErrorCode::kLimitExceeded);
}

TEST_F(ConnectionTest, LastWordsComeBeforeTheEndThoughASendFailedBetween) {
  ASSERT_TRUE(peer_.send(OpenDevice{0, 7}));
  peer_.close();
  connection_->send(Quit{});
  run_until([&] { return !closed_.empty(); });
  ASSERT_EQ(packets_.size(), 1u);
  EXPECT_EQ(packets_[0].as<OpenDevice>().virtual_device, 7u);
  EXPECT_EQ(closed_[0].code, ErrorCode::kPeerDied);
}

TEST_F(ConnectionTest, APausedOneReadsNothingUntilItIsResumed) {
  connection_->pause();
  ASSERT_TRUE(peer_.send(OpenDevice{0, 7}));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_->run_once(Duration{}));
  EXPECT_TRUE(packets_.empty());
  connection_->resume();
  run_until([&] { return packets_.size() == 1; });
}

TEST_F(ConnectionTest, MayBeDestroyedByItsOwnHandlers) {
  auto ends = *protocol::socket_pair();
  std::unique_ptr<Connection> mortal = std::make_unique<Connection>(*loop_, std::move(ends.first));
  ASSERT_TRUE(mortal->start({[&](protocol::Packet) { mortal.reset(); }, [](const Error&) {}}));
  ASSERT_TRUE(ends.second.send(Quit{}));
  run_until([&] { return mortal == nullptr; });
}

}  // namespace
}  // namespace heddle::daemon
