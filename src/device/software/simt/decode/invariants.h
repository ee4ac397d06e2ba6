#pragma once

#include <vector>

#include "device/software/ptx/ast.h"

namespace heddle::software {

// What of a kernel comes out the same in every block of a launch, thread by thread: what is computed from the launch's
// parameters, its shape, the thread's place in its block and constants alone. Such instructions run once for a warp,
// before its first block, and their registers keep what they hold.
struct Invariants {
  std::vector<bool> registers;     // by index; each is written by one instruction, without a guard
  std::vector<bool> instructions;  // those that write them

  bool holds(const ptx::Operand& operand) const {
    return operand.kind == ptx::Operand::Kind::kRegister && registers[operand.index];
  }
};

// Only kernels have any: the frame of a device function's registers is another one's after it returns.
Invariants find_invariants(const ptx::Function& function);

}  // namespace heddle::software
