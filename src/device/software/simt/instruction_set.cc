#include "device/software/simt/instruction_set.h"

#include "device/software/simt/instruction_families.h"

#define HEDDLE_LANES lanes_baseline
#include "device/software/simt/lanes/row_set.h"
#undef HEDDLE_LANES
#ifdef HEDDLE_LANES_X86
#define HEDDLE_LANES lanes_avx2
#include "device/software/simt/lanes/row_set.h"
#undef HEDDLE_LANES
#define HEDDLE_LANES lanes_avx512
#include "device/software/simt/lanes/row_set.h"
#undef HEDDLE_LANES
#endif

namespace heddle::software {

InstructionSet::InstructionSet(std::string_view name, const RowSet& rows)
    : name_(name), run_warp_(rows.run_warp), guarded_(rows.guarded) {
  for (const auto& family : rows.families)
    for (const Row& row : family) rows_.emplace(row.name, &row);
  for (const Row& row : common::atomic_rows()) rows_.emplace(row.name, &row);
  for (const Row& row : common::special_rows()) rows_.emplace(row.name, &row);
}

std::vector<const Row*> InstructionSet::all() const {
  std::vector<const Row*> rows;
  for (const auto& [name, row] : rows_) rows.push_back(row);
  return rows;
}

const Row* InstructionSet::find(std::string_view name) const {
  auto found = rows_.find(name);
  return found == rows_.end() ? nullptr : found->second;
}

#ifdef HEDDLE_LANES_X86
namespace {

// The levels of x86-64 by some of their features, since not every compiler knows the levels' names; a processor has the
// others of a level with them.
bool has_level_3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
}
bool has_level_4() {
  return has_level_3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace
#endif

std::vector<const InstructionSet*> runnable_instruction_sets() {
  static const InstructionSet baseline("baseline", lanes_baseline::row_set());
  std::vector<const InstructionSet*> sets = {&baseline};
#ifdef HEDDLE_LANES_X86
  if (has_level_3()) {
    static const InstructionSet avx2("avx2", lanes_avx2::row_set());
    sets.push_back(&avx2);
  }
  if (has_level_4()) {
    static const InstructionSet avx512("avx512", lanes_avx512::row_set());
    sets.push_back(&avx512);
  }
#endif
  return sets;
}

const InstructionSet& best_instruction_set() {
  static const InstructionSet& best = *runnable_instruction_sets().back();
  return best;
}

}  // namespace heddle::software
