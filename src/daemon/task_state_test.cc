// The life of a task, without processes: state and event in, state and actions out.

#include "daemon/task_state.h"

#include <gmock/gmock.h>

#include <set>

namespace heddle::daemon {
namespace {

using enum TaskState;
using enum TaskEvent;
using enum TaskAction;
using ::testing::HasSubstr;

constexpr TaskState kStates[] = {kNew,        kArriving,   kWaiting,   kPlaced,      kStarting, kRunning,
                                 kResuming,   kSuspending, kSuspended, kSwappingOut, kSwapped,  kReturning,
                                 kSwappingIn, kPromoting,  kStopping,  kEnded};
constexpr TaskEvent kEvents[] = {kMemoryAsked,  kBegun,       kRequested, kGrantedEarly, kGranted,      kRefused,
                                 kServed,       kFinished,    kCancelled, kExecutorGone, kExecutorLost, kExecutorStays,
                                 kSuspendAsked, kResumeAsked, kSwapAsked, kSwappedOut,   kSwapFailed,   kSwappedIn,
                                 kPromoteAsked, kRestored,    kRejoined};

using Actions = std::vector<TaskAction>;

struct Expected {
  const char* name;
  TaskState from;
  TaskEvent event;
  TaskState to;
  Actions actions;
};

const Expected kTable[] = {
    {"ABegunTaskIsAnnounced", kNew, kBegun, kArriving, {kDepositTask, kDepositSegments, kTellWaiting}},
    {"MemoryAloneIsNotAnnouncedAsWaiting", kNew, kMemoryAsked, kArriving, {kDepositTask, kDepositSegments}},
    {"ArrivingIsBegun", kArriving, kBegun, kArriving, {kDepositTask, kTellWaiting}},
    {"ArrivingIsRequested", kArriving, kRequested, kWaiting, {}},
    {"ArrivingIsCancelled", kArriving, kCancelled, kEnded, {kWithdrawTask}},
    {"WaitingIsBegun", kWaiting, kBegun, kWaiting, {kDepositTask, kTellWaiting}},
    {"GrantedEarlyWaitsForItsProgram", kWaiting, kGrantedEarly, kPlaced, {kDepositTask, kDepositRing, kHoldSegments}},
    {"GrantedLooksForAnExecutorBehindTheBooks",
     kWaiting,
     kGranted,
     kStarting,
     {kDepositTask, kDepositRing, kHoldSegments, kFindExecutor}},
    {"RefusedHoldsNothing", kWaiting, kRefused, kEnded, {kWithdrawTask}},
    {"WaitingIsCancelled", kWaiting, kCancelled, kEnded, {kWithdrawTask}},
    {"PlacedIsBegun", kPlaced, kBegun, kStarting, {kDepositTask, kTellWaiting, kFindExecutor}},
    {"PlacedIsRestored", kPlaced, kRestored, kStarting, {kFindExecutor}},
    {"PlacedIsRejoined", kPlaced, kRejoined, kRunning, {}},
    {"PlacedIsCancelled", kPlaced, kCancelled, kEnded, {kWithdrawTask}},
    {"TheProgramHearsOfItsDeviceBeforeTheBooksAndTheyBeforeTheExecutor",
     kStarting,
     kServed,
     kRunning,
     {kTellBound, kAllocate, kDepositRing, kEngageExecutor, kHandOver}},
    {"StartingIsCancelled", kStarting, kCancelled, kEnded, {kWithdrawTask}},
    {"RunningFinishes", kRunning, kFinished, kEnded, {kWithdrawTask, kDepositRing, kTellUnbound}},
    {"RunningIsCancelledAndKeepsItsMemory", kRunning, kCancelled, kStopping, {kStopExecutor}},
    {"RunningGoesOnInAnotherExecutor", kRunning, kExecutorLost, kResuming, {kDepositRing, kFindExecutor}},
    {"ResumingGetsEverythingAgain",
     kResuming,
     kServed,
     kRunning,
     {kTellBound, kAllocate, kDepositRing, kEngageExecutor, kHandOver}},
    {"ResumingIsCancelled", kResuming, kCancelled, kEnded, {kWithdrawTask}},
    {"StartingIsSuspendedAtOnce", kStarting, kSuspendAsked, kSuspended, {}},
    {"ResumingIsSuspendedAtOnce", kResuming, kSuspendAsked, kSuspended, {}},
    {"RunningIsSuspendedByItsExecutor", kRunning, kSuspendAsked, kSuspending, {kSuspendExecutor}},
    {"SuspendedOnceItsExecutorIsGone", kSuspending, kExecutorLost, kSuspended, {}},
    {"SuspendingGoesOnWhereItsExecutorStays", kSuspending, kExecutorStays, kRunning, {}},
    {"SuspendingFinishes", kSuspending, kFinished, kEnded, {kWithdrawTask, kDepositRing, kTellUnbound}},
    {"SuspendingIsCancelled", kSuspending, kCancelled, kStopping, {kStopExecutor}},
    {"SuspendedIsResumedByAnotherExecutor", kSuspended, kResumeAsked, kResuming, {kFindExecutor}},
    {"SuspendedIsCancelled", kSuspended, kCancelled, kEnded, {kWithdrawTask}},
    {"SuspendedIsSwapped", kSuspended, kSwapAsked, kSwappingOut, {kSwapOut}},
    {"SwappedOutItHasNoDeviceInTheBooksEither",
     kSwappingOut,
     kSwappedOut,
     kSwapped,
     {kLeaveDevice, kDepositTask, kDepositRing}},
    {"WhatCannotBeSwappedStaysSuspended", kSwappingOut, kSwapFailed, kSuspended, {kStopSwap}},
    {"SwappingOutIsResumed", kSwappingOut, kResumeAsked, kResuming, {kStopSwap, kFindExecutor}},
    {"SwappingOutIsCancelled", kSwappingOut, kCancelled, kEnded, {kStopSwap, kWithdrawTask}},
    {"SwappedIsResumed", kSwapped, kResumeAsked, kReturning, {}},
    {"SwappedIsCancelled", kSwapped, kCancelled, kEnded, {kWithdrawTask}},
    {"ReturningIsSuspendedAgain", kReturning, kSuspendAsked, kSwapped, {}},
    {"ReturningIsGrantedADeviceAndFillsIt", kReturning, kGranted, kSwappingIn, {kDepositTask, kDepositRing, kSwapIn}},
    {"ReturningIsRefused", kReturning, kRefused, kEnded, {kWithdrawTask}},
    {"ReturningIsCancelled", kReturning, kCancelled, kEnded, {kWithdrawTask}},
    {"SwappingInIsBegunAnew", kSwappingIn, kRestored, kSwappingIn, {kSwapIn}},
    {"SwappedInItGoesOnInAnotherExecutor", kSwappingIn, kSwappedIn, kResuming, {kReturnSpace, kFindExecutor}},
    {"SwappingInIsCancelled", kSwappingIn, kCancelled, kEnded, {kStopSwap, kWithdrawTask}},
    {"SuspendedIsPromoted", kSuspended, kPromoteAsked, kPromoting, {kDepositTask}},
    {"PromotedItGoesOnInAnotherExecutor", kPromoting, kSwappedIn, kResuming, {kReturnSpace, kFindExecutor}},
    {"NotPromotedItGoesOnAsItWas", kPromoting, kSwapFailed, kResuming, {kStopSwap, kFindExecutor}},
    {"PromotingIsCancelled", kPromoting, kCancelled, kEnded, {kStopSwap, kWithdrawTask}},
    {"StoppingIsCancelledOnceMore", kStopping, kCancelled, kStopping, {kStopExecutor}},
    {"StoppingEndsWithItsExecutor", kStopping, kExecutorGone, kEnded, {kWithdrawTask}},
};

class TaskTransition : public ::testing::TestWithParam<Expected> {};

TEST_P(TaskTransition, IsAsTheTableSays) {
  const auto step = next_step(GetParam().from, GetParam().event);
  ASSERT_TRUE(step) << step.error().text;
  EXPECT_EQ(step->to, GetParam().to);
  EXPECT_EQ(Actions(step->actions.begin(), step->actions.end()), GetParam().actions);
}

INSTANTIATE_TEST_SUITE_P(Table, TaskTransition, ::testing::ValuesIn(kTable),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(TaskStates, NothingElseCanHappen) {
  size_t possible = 0;
  for (const TaskState state : kStates) {
    for (const TaskEvent event : kEvents) possible += next_step(state, event).has_value();
  }
  EXPECT_EQ(possible, std::size(kTable));
}

TEST(TaskStates, WhatCannotHappenIsToldByName) {
  const auto step = next_step(kRunning, kGranted);
  ASSERT_FALSE(step);
  EXPECT_THAT(step.error().text, HasSubstr("a task that is running cannot be granted"));
}

// However a task stands when its session fails, it ends, at the latest with its executor.
TEST(TaskStates, EveryTaskCanBeCancelled) {
  for (const TaskState state : kStates) {
    if (state == kNew || state == kEnded) continue;
    const auto step = next_step(state, kCancelled);
    ASSERT_TRUE(step) << step.error().text;
    EXPECT_TRUE(step->to == kEnded || next_step(step->to, kExecutorGone)->to == kEnded);
  }
}

TEST(TaskStates, EveryStateIsReachedAndLeadsToTheEnd) {
  std::set<TaskState> reached{kNew};
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const Expected& row : kTable) {
      if (reached.contains(row.from)) reached.insert(row.to);
    }
  }
  EXPECT_EQ(reached.size(), std::size(kStates));
}

TEST(TaskStates, ADeviceIsHeldFromTheGrantToTheEndOrTheSwap) {
  for (const Expected& row : kTable) {
    const bool granted = row.event == kGranted || row.event == kGrantedEarly;
    if (row.to == kEnded || row.event == kSwappedOut) continue;
    EXPECT_EQ(has_device(row.to), granted || has_device(row.from)) << row.name;
    EXPECT_FALSE(granted && has_device(row.from)) << row.name;
  }
}

}  // namespace
}  // namespace heddle::daemon
