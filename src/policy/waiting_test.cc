#include "policy/waiting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

using testing::ElementsAre;

WaitKey key(uint64_t arrival) {
  return {TimePoint(Duration(arrival)), true, arrival};
}

// A line of tasks by the memory that they need; 0: one that waits for reasons of its own.
Line line_of(const std::vector<uint64_t>& needs) {
  Line line;
  for (uint64_t i = 0; i < needs.size(); ++i) {
    Wait wait{.task = {i}, .memory = {needs[i]}};
    if (needs[i] > 0) wait.need = Need{.memory = {needs[i]}};
    line.add(key(i), std::move(wait));
  }
  return line;
}

// The arrivals of those that are attempted where those in `granted` go and the others wait alike.
std::vector<uint64_t> attempts(Line& line, const std::set<uint64_t>& granted) {
  std::vector<uint64_t> all;
  Pass pass(line);
  while (const auto next = pass.next()) {
    all.push_back(next->arrival);
    if (granted.contains(next->arrival)) {
      line.remove(*next);
      pass.decided({});
    } else {
      pass.waits(true);
    }
  }
  return all;
}

TEST(Pass, AttemptsOneOfThoseWhoNeedTheSame) {
  Line line = line_of({5, 6, 5, 0, 6, 5, 0});
  EXPECT_THAT(attempts(line, {}), ElementsAre(0, 1, 3, 6));
}

TEST(Pass, DecisionHasThoseBehindItAttemptedAnew) {
  Line line = line_of({5, 6, 5, 6, 5, 6, 5});
  EXPECT_THAT(attempts(line, {3}), ElementsAre(0, 1));
  EXPECT_THAT(attempts(line, {1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(attempts(line, {0, 3}), ElementsAre(0, 2, 3, 4, 5));
}

TEST(Pass, WhoWaitsUnlikeTheOthersAnswersForHimselfAlone) {
  Line line = line_of({5, 5, 5});
  Pass pass(line);
  EXPECT_EQ(pass.next(), key(0));
  pass.waits(false);
  EXPECT_EQ(pass.next(), key(1));
  pass.waits(true);
  EXPECT_EQ(pass.next(), std::nullopt);
}

TEST(Pass, WhatComesWithADecisionTakesItsPlaceByAge) {
  Line line = line_of({5, 5, 0, 5});
  Pass pass(line);
  EXPECT_EQ(pass.next(), key(0));
  line.remove(key(0));
  line.set_need(key(3), {});
  const WaitKey extension{TimePoint(Duration(1)), false, 9};
  line.add(extension, {.kind = RequestKind::kExtension});
  pass.decided({extension});
  EXPECT_EQ(pass.next(), extension);
  pass.waits(false);
  EXPECT_EQ(pass.next(), key(1));
  pass.waits(true);
  EXPECT_EQ(pass.next(), key(2));
  pass.waits(false);
  EXPECT_EQ(pass.next(), key(3));
  pass.waits(false);
  EXPECT_EQ(pass.next(), std::nullopt);
}

TEST(Line, WhoLeavesThoseOfItsNeedTakesTheirReasonAlong) {
  Line line = line_of({5, 5});
  line.at(key(0)).why.text = "full";
  line.answered_for_all(line.at(key(0)));
  EXPECT_EQ(line.why(line.at(key(1))).text, "full");
  line.set_need(key(1), {});
  EXPECT_EQ(line.why(line.at(key(1))).text, "full");
  EXPECT_THAT(line.others(), ElementsAre(key(1)));
}

}  // namespace
}  // namespace heddle::policy
