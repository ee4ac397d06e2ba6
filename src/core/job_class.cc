#include "core/job_class.h"

#include <algorithm>

#include "core/result.h"

namespace heddle {

std::optional<WrongClass> wrong_class(std::string_view name, std::optional<Duration> slo) {
  if (name != kUserFacing && name != kBatch)
    return WrongClass{"class", stringf("class '%.*s': a job is user-facing or batch",
                                       static_cast<int>(std::min<size_t>(name.size(), 40)), name.data())};
  if (!slo) return {};
  if (name != kUserFacing)
    return WrongClass{"slo", stringf("slo %s: a batch job has no requests that are to end in time; one whose requests "
                                     "are is of class user-facing",
                                     to_string(*slo).c_str())};
  if (*slo < kLeastSlo || *slo > kLargestSlo)
    return WrongClass{"slo", stringf("slo %s: a request may take from %s to %s", to_string(*slo).c_str(),
                                     to_string(kLeastSlo).c_str(), to_string(kLargestSlo).c_str())};
  return {};
}

}  // namespace heddle
