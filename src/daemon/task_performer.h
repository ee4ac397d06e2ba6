#pragma once

#include "daemon/executor.h"
#include "daemon/segment_store.h"
#include "daemon/shared.h"
#include "daemon/swaps.h"

namespace heddle::daemon {

// Carries out what the life of a task asks for (task_state.h): memory for its segments, deposits, words in its ring,
// and an executor for it. Decides nothing.
class TaskPerformer {
 public:
  TaskPerformer(Shared& shared, SegmentStore& segments, Executor& executor, Swaps& swaps)
      : shared_(shared), segments_(segments), executor_(executor), swaps_(swaps) {}

  // In this order. An error: there is no memory for what the task holds; all the rest was done but to hand it over.
  Status perform(std::span<const TaskAction> actions, Session& session, VirtualDevice& device);

  // A segment that was asked for is granted: the books have it, and who waits for it is answered.
  void hold(Session& session, Segment& segment);
  // The memory of a segment that was granted while its task runs: the executor gets it, now or when a keeper has it.
  Status add_memory(Session& session, VirtualDevice& device, Segment& segment);
  // It has come from a keeper.
  void memory_came(Session& session, Segment& segment);
  // Tells the program that there will be no memory for a segment that it waits for.
  static void refuse(const Session& session, const Segment& segment, uint32_t cuda_error, const std::string& text);

  void deposit_task(const Session& session, const VirtualDevice& device);
  void deposit_ring(const Session& session, const VirtualDevice& device);
  // Once: the note never changes.
  void deposit_control(const Session& session, const VirtualDevice& device);

 private:
  Status perform(TaskAction action, Session& session, VirtualDevice& device);
  void deposit_segments(Session& session, const VirtualDevice& device);
  void hold_segments(Session& session, const VirtualDevice& device);
  static void answer(const Session& session, Segment& segment);

  Shared& shared_;
  SegmentStore& segments_;
  Executor& executor_;
  Swaps& swaps_;
};

}  // namespace heddle::daemon
