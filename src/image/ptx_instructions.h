#pragma once

#include <string_view>

#include "image/ptx_code.h"

// What is known of PTX's instructions beside their operands (PTX ISA 9.0).
namespace heddle::image {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names);

// Whether a value of this type has room for an address.
bool is_wide(std::string_view type);

// The first operand is what is computed from the others, and nothing else happens.
bool computes(const PtxInstruction& instruction);

// Touches no memory of the program and makes no value.
bool does_nothing(const PtxInstruction& instruction);

// What the instruction gives may be another time, although the kernel's input is the same: it tells the time, where a
// thread runs or what other threads have done by then, or it waits for them. Counted are
//   - volatile, relaxed and acquire loads but of local memory: what programs spin on. Of shared memory too: a flag of
//     another warp may lie there, and whether it does cannot be told from the reductions that read it so out of habit;
//   - clocks, timers, counters, the SM and the warp's slot, the grid's number, the words of the driver (%envreg), and
//     which lanes are active;
//   - tests of barriers in shared memory, which tell whether others have come, and nanosleep;
//   - fences beyond the block: they order accesses for other blocks, which is of use only where one looks at another.
// Barriers, votes and shuffles are not: they come out the same whoever comes first. Atomics are told apart.
bool observes(const PtxInstruction& instruction);

// Of an atomic: whether it shows in memory which thread came first. Sums of floating-point numbers are rounded in their
// order; of exchanges the last one stays.
bool is_order_visible(const PtxInstruction& instruction);

}  // namespace heddle::image
