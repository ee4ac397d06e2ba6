#pragma once

#include <cstdint>

#include "device/software/simt/op.h"

// alloca, stacksave and stackrestore. Frames of calls grow up from the beginning of a thread's local memory; what is
// allocated at run time grows down from its end, where the last bytes hold how far it has come. Only kernels that
// contain these instructions have any of it.
namespace heddle::software {

// Bytes at the end of each thread's local memory, for the mark.
inline constexpr uint32_t kStackMarkBytes = 16;

// At the begin of the kernel: nothing is allocated.
void start_stack(Warp& warp, const Op& op);
// At the begin of a function: d = how far the stack has come. A frame that reaches into it is a fault.
void enter_stack(Warp& warp, const Op& op);
// Before a function returns, and stackrestore: the stack is where it was when a was saved. imm: 1 if a has 64 bits.
void restore_stack(Warp& warp, const Op& op);
// stacksave: d; imm: 1 if it has 64 bits.
void save_stack(Warp& warp, const Op& op);
// alloca: d = address of a bytes, aligned to c; imm: 1 if both have 64 bits.
void allocate_on_stack(Warp& warp, const Op& op);

}  // namespace heddle::software
