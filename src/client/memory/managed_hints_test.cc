// What is said of ranges of managed memory.

#include "client/memory/managed_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace heddle::client {
namespace {

using ::testing::ElementsAre;

std::vector<bool> read_mostly(const ManagedHints& hints, uint64_t address, uint64_t bytes) {
  std::vector<bool> said;
  hints.for_each(address, bytes, [&](const ManagedHint& hint) { said.push_back(hint.read_mostly); });
  return said;
}
void say(ManagedHints& hints, uint64_t address, uint64_t bytes, bool value = true) {
  hints.change(address, bytes, [&](ManagedHint& hint) { hint.read_mostly = value; });
}

TEST(ManagedHints, NothingIsSaidOfOtherMemory) {
  ManagedHints hints;
  EXPECT_THAT(read_mostly(hints, 0, 100), ElementsAre(false));
  say(hints, 40, 20);
  EXPECT_THAT(read_mostly(hints, 0, 100), ElementsAre(false, true, false));
  EXPECT_THAT(read_mostly(hints, 40, 20), ElementsAre(true));
  EXPECT_THAT(read_mostly(hints, 59, 2), ElementsAre(true, false));
  EXPECT_THAT(read_mostly(hints, 60, 10), ElementsAre(false));
}

TEST(ManagedHints, RangesOverlapAndAreTakenBack) {
  ManagedHints hints;
  say(hints, 0, 50);
  say(hints, 70, 10);
  say(hints, 30, 100);
  EXPECT_THAT(read_mostly(hints, 0, 130), ElementsAre(true, true, true, true, true));
  say(hints, 10, 10, false);
  EXPECT_THAT(read_mostly(hints, 5, 20), ElementsAre(true, false, true));
}

TEST(ManagedHints, FreedMemoryIsForgotten) {
  ManagedHints hints;
  say(hints, 0, 100);
  hints.forget(20, 30);
  EXPECT_THAT(read_mostly(hints, 0, 100), ElementsAre(true, false, true));
  EXPECT_THAT(read_mostly(hints, 20, 30), ElementsAre(false));
}

}  // namespace
}  // namespace heddle::client
