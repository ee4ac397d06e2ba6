#include "device/software/model/board.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "core/clock.h"
#include "device/software/model/slots.h"
#include "device/software/model/test_model.h"

// A thread that attaches a board's most clients holds more locks than ThreadSanitizer's search for deadlocks can.
// NOLINTBEGIN: the name is the sanitizer's.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "detect_deadlocks=0";
}
// NOLINTEND

namespace heddle::software {
namespace {

constexpr SmShare kWholeSm{1, 8, 0, 0}, kHalfSm{1, 4, 0, 0};

TimePoint now() {
  return MonotonicClock().now();
}

Fd fresh_board() {
  return *create_memfd("board", Board::bytes(small_model()));
}

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

// A process that does something with the board and never comes back from it.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) : pid_(fork()) {
    if (pid_ == 0) body();
  }
  ~Child() { kill(); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

// A word that a child sets when it has come to the point that the test waits for.
class Flag {
 public:
  Flag() : memory_(*create_memfd("flag", Bytes{4096})), mapping_(*map_shared(memory_, Bytes{4096})) {}
  void set() { __atomic_store_n(word(), 1, __ATOMIC_RELEASE); }
  void wait() {
    while (__atomic_load_n(word(), __ATOMIC_ACQUIRE) == 0) usleep(100);
  }

 private:
  uint32_t* word() { return static_cast<uint32_t*>(mapping_.data()); }
  Fd memory_;
  Mapping mapping_;
};

// How many half SMs are to be had: 4 if nobody holds anything.
size_t free_halves(Board& board) {
  auto lock = board.lock();
  lock->sweep(now());
  Slots slots(*lock);
  slots.request({1, 100, kHalfSm, now(), false});
  slots.withdraw(1, now());
  auto placed = slots.collect();
  for (const Placement& placement : placed) slots.release(placement.slot, now());
  return placed.size();
}

TEST(Board, SecondProcessFindsTheSameBoard) {
  Fd memory = fresh_board();
  Board board = *Board::open(small_model(), memory);
  ASSERT_TRUE(board.attach());
  Flag held;
  Child child([&] {
    Board theirs = *Board::open(small_model(), memory);
    (void)theirs.attach();
    auto lock = theirs.lock();
    Slots(*lock).request({1, 1, kWholeSm, now(), false});
    { BoardLock released = std::move(*lock); }
    held.set();
    wait_for_the_end();
  });
  held.wait();
  EXPECT_EQ(free_halves(board), 2u);
  board.detach();
}

TEST(Board, HolderThatIsKilledGivesItsSlotsBack) {
  Fd memory = fresh_board();
  Board board = *Board::open(small_model(), memory);
  ASSERT_TRUE(board.attach());
  for (int round = 0; round < 50; ++round) {
    Flag held;
    Child child([&] {
      Board theirs = *Board::open(small_model(), memory);
      (void)theirs.attach();
      {
        auto lock = theirs.lock();
        Slots(*lock).request({1, 3, kHalfSm, now(), false});
      }
      held.set();
      wait_for_the_end();
    });
    held.wait();
    ASSERT_EQ(free_halves(board), 1u);
    child.kill();
    ASSERT_EQ(free_halves(board), 4u);
  }
  board.detach();
}

TEST(Board, HolderThatIsKilledInsideTheLockGivesItsSlotsBack) {
  Fd memory = fresh_board();
  Board board = *Board::open(small_model(), memory);
  ASSERT_TRUE(board.attach());
  for (int round = 0; round < 50; ++round) {
    Flag held;
    Child child([&] {
      Board theirs = *Board::open(small_model(), memory);
      (void)theirs.attach();
      auto lock = theirs.lock();
      Slots(*lock).request({1, 3, kHalfSm, now(), false});
      lock->sms()[0].used.warps = 77;  // as if it had come half-way through a change
      held.set();
      wait_for_the_end();
    });
    held.wait();
    child.kill();
    ASSERT_EQ(free_halves(board), 4u);
  }
  board.detach();
}

// Children come, take and leave blocks as fast as they can, and are killed wherever they happen to be.
TEST(Board, ProcessesKilledAtRandomLoseNothing) {
  Fd memory = fresh_board();
  Board board = *Board::open(small_model(), memory);
  ASSERT_TRUE(board.attach());
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    auto busy = [&] {
      Board theirs = *Board::open(small_model(), memory);
      (void)theirs.attach();
      for (uint64_t launch = 1;; ++launch) {
        auto lock = theirs.lock();
        Slots slots(*lock);
        slots.request({launch, 3, kHalfSm, now(), false});
        for (const Placement& placement : slots.collect()) slots.release(placement.slot, now());
      }
    };
    Child first(busy), second(busy);
    usleep(random() % 5000);
    first.kill();
    usleep(random() % 1000);
    second.kill();
    ASSERT_EQ(free_halves(board), 4u) << "round " << round;
  }
  board.detach();
}

// A process has taken both SMs and was killed; the test's client waits for them.
struct DeadHolder : testing::Test {
  DeadHolder() {
    EXPECT_TRUE(board.attach());
    Flag held;
    Child child([&] {
      Board theirs = *Board::open(small_model(), memory);
      (void)theirs.attach();
      {
        auto lock = theirs.lock();
        Slots(*lock).request({1, 2, kWholeSm, now(), false});
      }
      held.set();
      wait_for_the_end();
    });
    held.wait();
    auto lock = board.lock();
    Slots(*lock).request({9, 2, kWholeSm, now(), false});
    EXPECT_TRUE(Slots(*lock).waiting());
    { BoardLock released = std::move(*lock); }
    child.kill();
  }
  ~DeadHolder() override { board.detach(); }
  // What the waiter has once it has looked for the dead.
  size_t placed() {
    auto lock = board.lock();
    Slots slots(*lock);
    slots.sweep(now());
    return slots.collect().size();
  }

  Fd memory = fresh_board();
  Board board = *Board::open(small_model(), memory);
};

TEST_F(DeadHolder, LeavesItsSlotsToTheWaiter) {
  EXPECT_EQ(placed(), 2u);
}

// The third one finds the dead client first, as it joins.
TEST_F(DeadHolder, LeavesThemAlsoWhereAnotherHasSwept) {
  Board third = *Board::open(small_model(), memory);
  ASSERT_TRUE(third.attach());
  EXPECT_EQ(placed(), 2u);
  third.detach();
}

TEST(Board, AttachingToAFullBoardSaysSo) {
  Fd memory = fresh_board();
  std::vector<Board> boards;
  for (uint32_t i = 0; i < kMostClients; ++i) {
    boards.push_back(*Board::open(small_model(), memory));
    ASSERT_TRUE(boards.back().attach());
  }
  Board one_more = *Board::open(small_model(), memory);
  auto refused = one_more.attach();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimitExceeded);
  boards.back().detach();
  EXPECT_TRUE(one_more.attach());
  one_more.detach();
  boards.pop_back();
  for (Board& board : boards) board.detach();
}

TEST(Board, BoardOfAnotherModelIsRefused) {
  Fd memory = fresh_board();
  ASSERT_TRUE(Board::open(small_model(), memory));
  DeviceModel other = small_model();
  other.sms = 1;
  EXPECT_FALSE(Board::open(other, memory));
}

TEST(Board, MemoryThatIsTooSmallIsRefused) {
  Fd memory = *create_memfd("board", Bytes{4096});
  EXPECT_FALSE(Board::open(small_model(), memory));
}

TEST(Board, SleeperWakesWhenItWasRungBefore) {
  Fd memory = fresh_board();
  Board board = *Board::open(small_model(), memory);
  ASSERT_TRUE(board.attach());
  uint32_t seen = board.bell();
  board.ring(board.self());
  board.sleep(seen, now() + std::chrono::hours(1));  // would run into the test's timeout
  board.detach();
}

}  // namespace
}  // namespace heddle::software
