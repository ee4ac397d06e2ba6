#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/software/simt/row.h"

namespace heddle::software {

// The handlers of all instructions, built for one level of the host's vector instructions. The families that loop over
// lanes are compiled once for each level; which to use is chosen at run time.
class InstructionSet {
 public:
  using RunWarp = uint64_t (*)(Warp&, uint64_t);

  InstructionSet(std::string_view name, const RowSet& rows);

  std::string_view name() const { return name_; }
  std::vector<const Row*> all() const;
  // The row of that name, or null: the instruction is not supported.
  const Row* find(std::string_view name) const;
  // Runs a warp for at most so many instructions; returns how many ran.
  RunWarp run_warp() const { return run_warp_; }
  Handler guarded() const { return guarded_; }

 private:
  std::string_view name_;
  std::unordered_map<std::string_view, const Row*> rows_;
  RunWarp run_warp_;
  Handler guarded_;
};

// The best that this processor can run.
const InstructionSet& best_instruction_set();
// All that it can run, the plainest first: for tests and benchmarks.
std::vector<const InstructionSet*> runnable_instruction_sets();

}  // namespace heddle::software
