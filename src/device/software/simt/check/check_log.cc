#include "device/software/simt/check/check_log.h"

#include <algorithm>

#include "core/result.h"

namespace heddle::software {

bool CheckLog::is_new(Kind kind, std::string_view kernel, uint32_t line, uint32_t other_line) {
  if (known_.size() > kMostFindings) return false;
  const auto [low, high] = std::minmax(line, other_line);
  if (!known_.emplace(kind, std::string(kernel), low, high).second) return false;
  if (known_.size() <= kMostFindings) return true;
  tell_(stringf("these were %zu findings; more are not told", kMostFindings));
  return false;
}

}  // namespace heddle::software
