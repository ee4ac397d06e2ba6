#pragma once

#include <cstdint>

namespace heddle::software {

inline constexpr uint32_t kLanes = 32;
inline constexpr uint32_t kAllLanes = ~0u;

struct Warp;
struct Op;
using Handler = void (*)(Warp&, const Op&);

// One decoded step. Most PTX instructions are one Op; some are a few (an unpacking mov, a special register read as an
// operand), of which only the last counts as an instruction. Operands are byte offsets into the registers of the frame:
// a register is 32 lanes of 4 or 8 bytes (narrower types live in 4), a predicate is one 32-bit mask.
struct alignas(64) Op {
  Handler run = nullptr;    // what the interpreter calls
  Handler inner = nullptr;  // what a guarded Op runs for the lanes whose predicate holds
  int64_t imm = 0;
  uint32_t d = 0, a = 0, b = 0, c = 0;
  uint32_t guard = kNone;   // predicate
  uint32_t target = kNone;  // a place in the code, a call site, or a second destination
  uint32_t extra = kNone;   // first of further operands, in CompiledKernel::operands
  uint32_t line = 0;        // of the PTX source
  uint8_t count = 1;        // elements of a vector
  uint8_t flags = 0;        // OpFlag, by kind of instruction
  uint8_t weight = 1;       // instructions that it counts for
  bool guard_negated = false;

  static constexpr uint32_t kNone = ~0u;
  static constexpr uint8_t kWholeTurn = 255;  // weight of an Op that ends its warp's turn, and counts for nothing
};
static_assert(sizeof(Op) == 64, "one cache line");

// Flags; those of different kinds of instruction share bits.
enum OpFlag : uint8_t {
  // memory: how the address is formed
  kAddress64 = 1,      // the base register has 64 bits
  kFrameRelative = 2,  // the base is an offset into the local memory of the frame
  kPolling = 4,        // volatile, acquire or atomic: a loop over it may be waiting for another thread
  kDiscardResult = 8,  // red
  kSameAddress = 16,   // the same in all blocks of a launch; b: room for where it went before
  // bar.sync and the like
  kIndexGiven = 1,  // the barrier's index is imm, not in a
  // setp: d = (a ? b) <op> c
  kCombineAnd = 1,
  kCombineOr = 2,
  kCombineXor = 3,
  kCombineMask = 3,
  kNegateC = 4,
  kThenBranch = 8,  // the Op behind it is a branch, run with it
};

inline constexpr uint32_t kKnownAccessBytes = 64;  // of the room that kSameAddress asks for

// Windows of generic addresses, far above any address of a process. What lies below them is global memory.
inline constexpr uint64_t kSharedWindow = 1ull << 48;
inline constexpr uint64_t kLocalWindow = kSharedWindow + (1ull << 32);
inline constexpr uint64_t kParameterWindow = kSharedWindow + (2ull << 32);
// Addresses of functions: no memory is there.
inline constexpr uint64_t kFunctionWindow = kSharedWindow + (3ull << 32);
inline constexpr uint64_t kFunctionStep = 16;

}  // namespace heddle::software
