#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "policy/placement/history.h"

namespace heddle::policy {

// What policies know of applications as text, to be read by a later heddle. Lines as an input log has them (entry.h):
//
//   0 history 2                                       the number of its format
//   0 learned 'APP JOBS BUSY UTILIZATION BY_HOST      one for each application, in the order of History::known()
//   0 end COUNT                                       of applications: what was cut off has none
std::string write_history(const std::vector<KnownApp>& apps);

// kCorrupt names the line that makes no sense.
Result<std::vector<KnownApp>> read_history(std::string_view text);

}  // namespace heddle::policy
