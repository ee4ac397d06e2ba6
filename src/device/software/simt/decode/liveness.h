#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "device/software/ptx/ast.h"

namespace heddle::software {

// Over which instructions of a function a register holds a value that may still be read, or is written; both ends
// belong to it. A register that is never mentioned has begin > end.
struct LiveInterval {
  uint32_t begin = ~0u;
  uint32_t end = 0;
};

// One interval for each register, without holes. It holds for each lane by itself, whatever way other lanes take. None
// if the function is too large to analyse.
std::optional<std::vector<LiveInterval>> live_intervals(const ptx::Function& function);

}  // namespace heddle::software
