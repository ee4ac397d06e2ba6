#include "worker/components.h"

#include <gmock/gmock.h>

namespace heddle::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Streams = Components::Streams;

struct ComponentsTest : ::testing::Test {
  static Touched part(uint64_t segment, uint64_t begin, uint64_t end, bool read, bool written) {
    return {{Region::Kind::kDevice, segment, 0}, begin, end, read, written};
  }
  void reads(uint32_t stream, uint64_t segment, uint64_t begin, uint64_t end) {
    touch(stream, part(segment, begin, end, true, false));
  }
  void writes(uint32_t stream, uint64_t segment, uint64_t begin, uint64_t end) {
    touch(stream, part(segment, begin, end, false, true));
  }
  void touch(uint32_t stream, const Touched& part) {
    RecordEffects effects;
    effects.touched = {part};
    components.touches(stream, effects, {}, now);
    components.taken(stream, false, now);
  }
  Components components;
  TimePoint now{std::chrono::seconds(1)};
};

TEST_F(ComponentsTest, StreamsThatHaveNothingToDoWithEachOtherStandAlone) {
  writes(1, 7, 0, 100);
  writes(2, 7, 100, 200);
  writes(3, 8, 0, 100);
  EXPECT_TRUE(components.several());
  EXPECT_THAT(components.all(), ElementsAre(Streams{1}, Streams{2}, Streams{3}));
  EXPECT_THAT(components.of(2), ElementsAre(Streams{2}));
  EXPECT_THAT(components.of(4), IsEmpty());
}

TEST_F(ComponentsTest, TheyMeetInBytesThatOneOfThemWrites) {
  reads(1, 7, 0, 100);
  reads(2, 7, 0, 100);
  EXPECT_TRUE(components.several());
  writes(3, 7, 99, 100);
  EXPECT_FALSE(components.several());
  EXPECT_THAT(components.of(1), ElementsAre(UnorderedElementsAre(1, 2, 3)));
}

TEST_F(ComponentsTest, WhatIsSavedIsWritten) {
  writes(1, 7, 0, 100);
  components.touches(2, {}, {{7, {50, 60}}}, now);
  EXPECT_FALSE(components.several());
}

TEST_F(ComponentsTest, WhoWaitsForTheOtherIsOfItsComponent) {
  writes(1, 7, 0, 1);
  components.taken(2, false, now);
  components.waits(2, 1);
  EXPECT_THAT(components.all(), ElementsAre(UnorderedElementsAre(1, 2)));
  components.taken(3, false, now);
  components.waits(3, 9);  // of which nothing was taken
  EXPECT_TRUE(components.several());
}

TEST_F(ComponentsTest, AnEventThatIsRecordedAgainJoins) {
  components.taken(1, false, now);
  components.records(1, 5);
  components.taken(2, false, now);
  components.records(2, 6);
  EXPECT_TRUE(components.several());
  components.records(2, 5);
  EXPECT_FALSE(components.several());
}

TEST_F(ComponentsTest, TheDefaultStreamJoinsAllThatWaitForIt) {
  components.taken(1, true, now);
  components.taken(2, true, now);
  components.taken(3, false, now);
  EXPECT_EQ(components.all().size(), 3u);
  components.taken(0, true, now);
  EXPECT_THAT(components.of(0), ElementsAre(UnorderedElementsAre(0, 1, 2)));
  components.taken(4, true, now);
  EXPECT_THAT(components.of(0), ElementsAre(UnorderedElementsAre(0, 1, 2, 4)));
  EXPECT_THAT(components.of(3), ElementsAre(Streams{3}));
}

TEST_F(ComponentsTest, WhereEffectsAreNotKnownAllAreTogether) {
  writes(1, 7, 0, 1);
  RecordEffects unknown;
  unknown.reads_everything = true;
  components.touches(2, unknown, {}, now);
  EXPECT_FALSE(components.several());
  EXPECT_THAT(components.all(), IsEmpty());
  writes(3, 8, 0, 1);
  EXPECT_THAT(components.of(3), IsEmpty());
  components.clear();
  writes(3, 8, 0, 1);
  EXPECT_THAT(components.of(3), ElementsAre(Streams{3}));
}

TEST_F(ComponentsTest, WhereAVariableIsWrittenToo) {
  writes(1, 7, 0, 1);
  Touched variable{{Region::Kind::kVariable, 0, 1}, 0, 0, true, false};
  touch(2, variable);
  EXPECT_TRUE(components.several());
  variable.written = true;
  touch(2, variable);
  EXPECT_THAT(components.all(), IsEmpty());
}

TEST_F(ComponentsTest, SoTheyAreWhereThereAreTooMany) {
  for (uint32_t stream = 0; stream <= protocol::StreamCuts::kMost; ++stream) writes(stream + 1, stream, 0, 1);
  EXPECT_THAT(components.all(), IsEmpty());
}

TEST_F(ComponentsTest, OneThatIsCommittedBeginsAnew) {
  writes(1, 7, 0, 100);
  reads(1, 9, 0, 100);
  writes(2, 8, 0, 100);
  reads(2, 9, 50, 200);
  const auto committed = components.committed({1});
  ASSERT_EQ(committed.size(), 2u);
  EXPECT_EQ(committed[0].segment, 7u);
  EXPECT_EQ(committed[0].alone, ByteRanges({0, 100}));
  EXPECT_EQ(committed[1].touched, ByteRanges({0, 100}));
  EXPECT_EQ(committed[1].alone, ByteRanges({0, 50})) << "the other has read the rest";
  EXPECT_THAT(components.all(), ElementsAre(Streams{2}));
  writes(1, 7, 0, 100);
  EXPECT_TRUE(components.several());
  writes(1, 9, 60, 70);
  EXPECT_FALSE(components.several()) << "what it writes the other has read";
}

TEST_F(ComponentsTest, TheyAreAsOldAsTheirOldestStream) {
  const TimePoint began{}, first = now, later = now + std::chrono::seconds(5);
  writes(1, 7, 0, 100);
  now += std::chrono::seconds(2);
  writes(2, 7, 0, 100);
  writes(3, 8, 0, 100);
  EXPECT_EQ(components.since(2, began, later), first);
  EXPECT_EQ(components.since(3, began, later), now);
  EXPECT_EQ(components.since(4, began, later), later);
  (void)components.committed({1, 2});
  EXPECT_EQ(components.since(2, began, later), later);
  components.join_all();
  EXPECT_EQ(components.since(3, began, later), began);
}

TEST_F(ComponentsTest, OfManyRangesAllThatLiesInBetweenCounts) {
  writes(2, 7, 10, 11);
  for (uint64_t i = 1; i <= 128; ++i) writes(1, 7, 100 * i, 100 * i + 1);
  EXPECT_TRUE(components.several());
  writes(3, 7, 150, 151);
  writes(1, 7, 100 * 200, 100 * 200 + 1);
  EXPECT_THAT(components.of(1), ElementsAre(UnorderedElementsAre(1, 3)));
  writes(2, 7, 250, 251);
  EXPECT_FALSE(components.several());
}

}  // namespace
}  // namespace heddle::worker
