#pragma once

// Tasks that may run apart from the rest of their device's work: nobody else has a pointer to what they work on, and
// the host waits for all that it learns from them (include/heddle/task.h, HEDDLE_TASK_APART). What their kernels do is
// looked at when the program runs.

#include "pass/Tasks.h"
#include "llvm/Analysis/LoopInfo.h"
#include <optional>

namespace heddle::compiler {

// A word for each of the task's launches, as heddle_task::pointers has them; nothing where the task may not.
std::optional<llvm::SmallVector<uint64_t>> pointersApart(const Task &T, const llvm::Instruction &Probe,
                                                         llvm::LoopInfo &Loops);

// heddle_task_enter before, and heddle_task_leave behind, each of its operations.
void insertEnterAndLeave(const Task &T, llvm::Value *Number);

} // namespace heddle::compiler
