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

}  // namespace
}  // namespace heddle::worker
