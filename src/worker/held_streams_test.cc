#include "worker/held_streams.h"

#include <gmock/gmock.h>

namespace heddle::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr bool kBlocking = true, kNonBlocking = false;

struct HeldStreamsTest : testing::Test {
  std::vector<HeldBy> next(uint32_t stream, bool blocking = kNonBlocking) {
    held.follow(stream, blocking);
    return held.of(stream);
  }
  HeldStreams held;
};

TEST_F(HeldStreamsTest, AStreamIsHeldByItsLatestHostCallUntilThatHasReturned) {
  EXPECT_THAT(next(1), IsEmpty());
  held.hold(1, kNonBlocking, 10);
  held.hold(1, kNonBlocking, 20);
  EXPECT_THAT(next(1), ElementsAre(HeldBy{1, 20}));
  EXPECT_THAT(next(2), IsEmpty());
  held.release({1, 10});
  EXPECT_THAT(next(1), ElementsAre(HeldBy{1, 20}));
  held.release({1, 20});
  EXPECT_THAT(next(1), IsEmpty());
}

TEST_F(HeldStreamsTest, WhoWaitsForAnEventStandsBehindWhatItsStreamDoes) {
  held.hold(1, kNonBlocking, 10);
  held.hold(2, kNonBlocking, 20);
  held.wait(2, kNonBlocking, held.of(1));
  held.wait(3, kNonBlocking, held.of(2));
  EXPECT_THAT(next(3), UnorderedElementsAre(HeldBy{1, 10}, HeldBy{2, 20}));
  held.release({2, 20});
  EXPECT_THAT(next(3), ElementsAre(HeldBy{1, 10}));
  held.release({1, 10});
  EXPECT_THAT(next(3), IsEmpty());
}

TEST_F(HeldStreamsTest, TheDefaultStreamWaitsForBlockingStreamsAndTheyForIt) {
  held.hold(1, kBlocking, 10);
  held.hold(2, kNonBlocking, 20);
  EXPECT_THAT(next(3, kBlocking), IsEmpty()) << "nothing on stream 0 yet";
  EXPECT_THAT(next(0, kBlocking), ElementsAre(HeldBy{1, 10}));
  EXPECT_THAT(next(3, kBlocking), ElementsAre(HeldBy{1, 10}));
  EXPECT_THAT(next(4, kNonBlocking), IsEmpty());
  held.release({1, 10});
  EXPECT_THAT(next(0, kBlocking), IsEmpty());
  EXPECT_THAT(next(3, kBlocking), IsEmpty());
}

}  // namespace
}  // namespace heddle::worker
