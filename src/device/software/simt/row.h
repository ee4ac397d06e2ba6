#pragma once

#include <cstdint>
#include <span>

#include "device/software/simt/op.h"

namespace heddle::software {

// What an operand occupies. kNone: the instruction has no such operand.
enum class Width : uint8_t { kNone, kPredicate, k32, k64 };

// One supported form of an instruction: its full name, what its operands are, and what executes it. Supporting another
// form means adding a row to a family.
struct Row {
  const char* name;
  Handler handler;
  Width d = Width::kNone, a = Width::kNone, b = Width::kNone, c = Width::kNone;
};

// Everything that is built once for each level of vector instructions. The files that fill it use no containers and no
// inline functions of others: a function that the linker shares between levels could hold instructions that this
// processor lacks.
struct RowSet {
  std::span<const Row> families[20];
  uint64_t (*run_warp)(Warp&, uint64_t);
  Handler guarded;
};

}  // namespace heddle::software
