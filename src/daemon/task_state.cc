#include "daemon/task_state.h"

#include <algorithm>
#include <iterator>

namespace heddle::daemon {
namespace {

using enum TaskState;
using enum TaskEvent;
using enum TaskAction;

// Which of the words in the ring, the deposits and the messages come first is told in docs/architecture.md: the program
// hears of its device (kTellBound) before the books do, and the books of everything before an executor acts on it.
constexpr TaskAction kAnnounce[] = {kDepositTask, kDepositSegments, kTellWaiting};
constexpr TaskAction kReserve[] = {kDepositTask, kDepositSegments};
constexpr TaskAction kAddLaunch[] = {kDepositTask, kTellWaiting};
constexpr TaskAction kAddLaunchAndStart[] = {kDepositTask, kTellWaiting, kFindExecutor};
constexpr TaskAction kHold[] = {kDepositTask, kDepositRing, kHoldSegments};
constexpr TaskAction kHoldAndStart[] = {kDepositTask, kDepositRing, kHoldSegments, kFindExecutor};
constexpr TaskAction kServe[] = {kTellBound, kAllocate, kDepositRing, kEngageExecutor, kHandOver};
constexpr TaskAction kFinish[] = {kWithdrawTask, kDepositRing, kTellUnbound};
constexpr TaskAction kForget[] = {kWithdrawTask};
constexpr TaskAction kStart[] = {kFindExecutor};
constexpr TaskAction kReplace[] = {kDepositRing, kFindExecutor};
constexpr TaskAction kSuspend[] = {kSuspendExecutor};
constexpr TaskAction kStop[] = {kStopExecutor};
constexpr TaskAction kCopyOut[] = {kSwapOut};
constexpr TaskAction kLeave[] = {kLeaveDevice, kDepositTask, kDepositRing};
constexpr TaskAction kStay[] = {kStopSwap};
constexpr TaskAction kStayAndGoOn[] = {kStopSwap, kFindExecutor};
constexpr TaskAction kStopAndForget[] = {kStopSwap, kWithdrawTask};
constexpr TaskAction kHoldAndCopyIn[] = {kDepositTask, kDepositRing, kSwapIn};
constexpr TaskAction kCopyIn[] = {kSwapIn};
constexpr TaskAction kNote[] = {kDepositTask};
constexpr TaskAction kGoOn[] = {kReturnSpace, kFindExecutor};

struct Row {
  TaskState from;
  TaskEvent event;
  TaskState to;
  std::span<const TaskAction> actions;
};

constexpr Row kTable[] = {
    {kNew, kBegun, kArriving, kAnnounce},
    {kNew, kMemoryAsked, kArriving, kReserve},
    {kArriving, kBegun, kArriving, kAddLaunch},
    {kArriving, kRequested, kWaiting, {}},
    {kArriving, kCancelled, kEnded, kForget},
    {kWaiting, kBegun, kWaiting, kAddLaunch},
    {kWaiting, kGrantedEarly, kPlaced, kHold},
    {kWaiting, kGranted, kStarting, kHoldAndStart},
    {kWaiting, kRefused, kEnded, kForget},
    {kWaiting, kCancelled, kEnded, kForget},
    {kPlaced, kBegun, kStarting, kAddLaunchAndStart},
    {kPlaced, kRestored, kStarting, kStart},
    {kPlaced, kRejoined, kRunning, {}},
    {kPlaced, kCancelled, kEnded, kForget},
    {kStarting, kServed, kRunning, kServe},
    {kStarting, kCancelled, kEnded, kForget},
    {kRunning, kFinished, kEnded, kFinish},
    {kRunning, kCancelled, kStopping, kStop},
    {kRunning, kExecutorLost, kResuming, kReplace},
    {kResuming, kServed, kRunning, kServe},
    {kResuming, kCancelled, kEnded, kForget},
    // That the job is suspended is deposited before, with the job.
    {kStarting, kSuspendAsked, kSuspended, {}},
    {kResuming, kSuspendAsked, kSuspended, {}},
    {kRunning, kSuspendAsked, kSuspending, kSuspend},
    {kSuspending, kExecutorLost, kSuspended, {}},
    {kSuspending, kExecutorStays, kRunning, {}},
    {kSuspending, kFinished, kEnded, kFinish},
    {kSuspending, kCancelled, kStopping, kStop},
    {kSuspended, kResumeAsked, kResuming, kStart},
    {kSuspended, kCancelled, kEnded, kForget},
    // What is copied counts once all of it is: until then nothing stands in the vault that a successor could go by.
    {kSuspended, kSwapAsked, kSwappingOut, kCopyOut},
    {kSwappingOut, kSwappedOut, kSwapped, kLeave},
    {kSwappingOut, kSwapFailed, kSuspended, kStay},
    {kSwappingOut, kResumeAsked, kResuming, kStayAndGoOn},
    {kSwappingOut, kCancelled, kEnded, kStopAndForget},
    {kSwapped, kResumeAsked, kReturning, {}},
    {kSwapped, kCancelled, kEnded, kForget},
    {kReturning, kSuspendAsked, kSwapped, {}},
    {kReturning, kGranted, kSwappingIn, kHoldAndCopyIn},
    {kReturning, kRefused, kEnded, kForget},
    {kReturning, kCancelled, kEnded, kForget},
    {kSwappingIn, kRestored, kSwappingIn, kCopyIn},
    {kSwappingIn, kSwappedIn, kResuming, kGoOn},
    {kSwappingIn, kCancelled, kEnded, kStopAndForget},
    // The copies are under way already.
    {kSuspended, kPromoteAsked, kPromoting, kNote},
    {kPromoting, kSwappedIn, kResuming, kGoOn},
    {kPromoting, kSwapFailed, kResuming, kStayAndGoOn},
    {kPromoting, kCancelled, kEnded, kStopAndForget},
    {kStopping, kCancelled, kStopping, kStop},
    {kStopping, kExecutorGone, kEnded, kForget},
};

const char* name(TaskState state) {
  switch (state) {
    case kNew:
      return "new";
    case kArriving:
      return "arriving";
    case kWaiting:
      return "waiting";
    case kPlaced:
      return "placed";
    case kStarting:
      return "starting";
    case kRunning:
      return "running";
    case kResuming:
      return "resuming";
    case kSuspending:
      return "suspending";
    case kSuspended:
      return "suspended";
    case kSwappingOut:
      return "swapping out";
    case kSwapped:
      return "swapped";
    case kReturning:
      return "returning";
    case kSwappingIn:
      return "swapping in";
    case kPromoting:
      return "promoting";
    case kStopping:
      return "stopping";
    case kEnded:
      return "ended";
  }
  return "in no state";
}

const char* name(TaskEvent event) {
  switch (event) {
    case kMemoryAsked:
      return "be asked for memory";
    case kBegun:
      return "be begun";
    case kRequested:
      return "be requested";
    case kGrantedEarly:
      return "be granted before it begins";
    case kGranted:
      return "be granted";
    case kRefused:
      return "be refused";
    case kServed:
      return "be served";
    case kFinished:
      return "finish";
    case kCancelled:
      return "be cancelled";
    case kExecutorGone:
      return "lose its executor";
    case kExecutorLost:
      return "go on without its executor";
    case kExecutorStays:
      return "stay with its executor";
    case kSuspendAsked:
      return "be suspended";
    case kResumeAsked:
      return "be resumed";
    case kSwapAsked:
      return "be swapped";
    case kSwappedOut:
      return "be swapped out";
    case kSwapFailed:
      return "fail to be swapped out";
    case kPromoteAsked:
      return "be promoted";
    case kSwappedIn:
      return "be swapped in";
    case kRestored:
      return "be restored";
    case kRejoined:
      return "be rejoined";
  }
  return "take an unknown event";
}

}  // namespace

Result<TaskStep> next_step(TaskState state, TaskEvent event) {
  const auto row = std::find_if(std::begin(kTable), std::end(kTable),
                                [&](const Row& each) { return each.from == state && each.event == event; });
  if (row == std::end(kTable))
    return fail(ErrorCode::kInternal, "a task that is %s cannot %s", name(state), name(event));
  return TaskStep{row->to, row->actions};
}

}  // namespace heddle::daemon
