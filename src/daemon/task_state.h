#pragma once

#include <span>

#include "core/result.h"

namespace heddle::daemon {

// The life of a task as a state machine: what follows which event, and what is to be done then. Plain values; the table
// stands in task_state.cc, and a task's state changes by it alone.
//
//   new -> arriving -> waiting -> placed -> starting -> running -> ended
//                         \________________/          ^    |\-> stopping -> ended
//                                                     |    v
//                                                    resuming
//
// While its job is suspended:
//
//   running -> suspending -> suspended -> resuming      starting -> suspended      resuming -> suspended
//
// A task that is suspending may end, be stopped, or go on running where its executor cannot give it up.
//
// Its memory may leave the device then, so that the device is others', and come back to any device of the model:
//
//   suspended -> swapping out -> swapped -> returning -> swapping in -> resuming
//
// One that is swapping out may stay suspended or be resumed, one that is returning be suspended again.
//
// A task that was launched with a part of its memory on the host is suspended for a moment while some of that is copied
// to its device:
//
//   suspended -> promoting -> resuming
enum class TaskState {
  kNew,
  kArriving,     // not with the scheduler yet: idle memory is being given back, so that it need not wait
  kWaiting,      // for the scheduler's decision
  kPlaced,       // has a device; its program has not begun it, or heddled was restarted and nobody serves it yet
  kStarting,     // has a device and waits for an executor
  kRunning,      // an executor serves it
  kResuming,     // its executor has died with nothing under way, and it waits for another on its device
  kSuspending,   // its job is suspended; its executor ends what is under way
  kSuspended,    // its job is suspended: it keeps its memory, and nobody serves it
  kSwappingOut,  // as suspended, and its memory is being copied to swap space
  kSwapped,      // its job is suspended: it has no device
  kReturning,    // its job is not, and it waits for the scheduler's decision
  kSwappingIn,   // it has a device, where its memory is being copied
  kPromoting,    // it has a device, where memory of it that lies on the host is being copied
  kStopping,     // its session has failed or is over; what it holds returns when its executor is gone
  kEnded,        // out of the books
};

enum class TaskEvent {
  kMemoryAsked,   // its program waits for memory, before it begins the task
  kBegun,         // its program has begun it
  kRequested,     // nothing more is to be had back: the scheduler is asked
  kGrantedEarly,  // a device, before the program has begun it
  kGranted,       // a device
  kRefused,       // by the scheduler
  kServed,        // an executor was found
  kFinished,      // all of its program's work is done, says the executor
  kCancelled,     // its session has failed or is over
  kExecutorGone,
  kExecutorLost,   // the executor has died, or given the task up, and another can go on in its place
  kExecutorStays,  // the executor was to give the task up, and cannot
  kSuspendAsked,
  kResumeAsked,
  kSwapAsked,
  kSwappedOut,  // all of its memory is in swap space
  kSwapFailed,  // it is not, and will not be
  kPromoteAsked,
  kSwappedIn,  // all of its memory is on its device, or all that was to be promoted
  kRestored,   // after a restart of heddled: it has a device, and nobody serves it
  kRejoined,   // after a restart of heddled: the executor that served it still does
};

// What TaskPerformer carries out.
enum class TaskAction {
  kDepositTask,
  kDepositSegments,
  kDepositRing,
  kWithdrawTask,
  kTellWaiting,  // the words in the ring
  kTellBound,
  kTellUnbound,   // unless its virtual device's next task was begun already
  kHoldSegments,  // what was asked for with the task is granted; programs that wait for some of it are answered
  kAllocate,      // memory for what it holds
  kFindExecutor,
  kEngageExecutor,   // the one that was found is the virtual device's now, in the vault too
  kHandOver,         // all that it needs goes to the executor; without memory for it, nothing
  kSuspendExecutor,  // it is told to give the task up
  kStopExecutor,
  kSwapOut,      // its memory is copied to swap space
  kSwapIn,       // and back
  kStopSwap,     // it is not, after all
  kLeaveDevice,  // what is copied counts, and what was there goes back
  kReturnSpace,
};

struct TaskStep {
  TaskState to;
  std::span<const TaskAction> actions;  // in this order; static
};

// An error, which names both, where the event cannot come in this state.
Result<TaskStep> next_step(TaskState state, TaskEvent event);

// Whether the scheduler has given it a device.
constexpr bool has_device(TaskState state) {
  return state == TaskState::kPlaced || state == TaskState::kStarting || state == TaskState::kRunning ||
         state == TaskState::kResuming || state == TaskState::kSuspending || state == TaskState::kSuspended ||
         state == TaskState::kSwappingOut || state == TaskState::kSwappingIn || state == TaskState::kPromoting ||
         state == TaskState::kStopping;
}
// It has a device, and nobody serves it yet.
constexpr bool awaits_executor(TaskState state) {
  return state == TaskState::kStarting || state == TaskState::kResuming;
}

// Where its job's being suspended makes a difference to it that was not made yet.
constexpr bool can_be_suspended(TaskState state) {
  return state == TaskState::kRunning || awaits_executor(state);
}
// Between being suspended and resumed, and not with all of its memory on a device.
constexpr bool is_swapped(TaskState state) {
  return state == TaskState::kSwappingOut || state == TaskState::kSwapped || state == TaskState::kReturning ||
         state == TaskState::kSwappingIn;
}
// Its program runs it, and frees what it holds, as far as anybody serves it.
constexpr bool has_begun(TaskState state) {
  return state == TaskState::kRunning || state == TaskState::kResuming || state == TaskState::kSuspending ||
         state == TaskState::kSuspended || state == TaskState::kPromoting || is_swapped(state);
}

}  // namespace heddle::daemon
