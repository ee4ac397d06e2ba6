#include "worker/outbox.h"

#include <gmock/gmock.h>

namespace heddle::worker {
namespace {

using protocol::Backlog;
using protocol::Drained;
using protocol::LeaseReturned;
using testing::SizeIs;

struct OutboxTest : testing::Test {
  std::unique_ptr<Outbox> outbox = std::move(*Outbox::create());
};

// Each pause of its program brings about a pair of them.
TEST_F(OutboxTest, WhileHeddledIsAwayWhetherThereIsWorkIsKeptNoMoreThanTwice) {
  for (int pause = 0; pause < 1000; ++pause) {
    outbox->put(Backlog{7});
    outbox->put(Drained{7});
  }
  outbox->put(Backlog{7});
  const auto queued = outbox->take();
  ASSERT_THAT(queued, SizeIs(1));
  EXPECT_TRUE(std::holds_alternative<Backlog>(queued.back()));
}

TEST_F(OutboxTest, OneBurstIsToldAsItWas) {
  outbox->put(Backlog{7});
  outbox->put(Drained{7});
  const auto queued = outbox->take();
  ASSERT_THAT(queued, SizeIs(2));
  EXPECT_TRUE(std::holds_alternative<Drained>(queued.back()));
}

TEST_F(OutboxTest, NothingElseIsTakenBack) {
  outbox->put(Backlog{7});
  outbox->put(LeaseReturned{1});
  outbox->put(Drained{7});
  outbox->put(protocol::TaskEnded{7});
  outbox->put(Backlog{8});
  outbox->put(Drained{8});
  EXPECT_THAT(outbox->take(), SizeIs(6));
}

// Else a new heddled would take it for a fault that nobody has looked into.
TEST_F(OutboxTest, AFaultThatIsShownWasNeverHeldBack) {
  auto ends = protocol::socket_pair();
  ASSERT_TRUE(ends);
  outbox->put(protocol::WorkerFault{.cuda_error = 700, .device_lost = 1, .held_back = 1});
  outbox->put(protocol::WorkerFault{.cuda_error = 700, .device_lost = 1});
  ASSERT_TRUE(outbox->flush(ends->first));
  outbox->rewind();
  const auto queued = outbox->take();
  ASSERT_THAT(queued, SizeIs(1));
  EXPECT_EQ(std::get<protocol::WorkerFault>(queued.front()).held_back, 0u);
}

}  // namespace
}  // namespace heddle::worker
