#pragma once

#include <string>

#include "core/result.h"

namespace heddle::daemon {

// The path of heddle's own program `name` (heddled, heddle-vault, heddle-worker): in `directory` where that is not
// empty, else beside the running executable or in ../libexec/heddle.
Result<std::string> find_program(const std::string& name, const std::string& directory);

}  // namespace heddle::daemon
