#pragma once

#include <vector>

#include "core/result.h"
#include "device/software/ptx/ast.h"

namespace heddle::ptx {

// Separately compiled modules of one program (nvcc -rdc=true) as one: what one declares and another defines is the
// latter's. Of weak definitions the first stays; kNotSupported if a name is defined twice otherwise. `units` is not
// empty.
Result<Module> link(std::vector<Module> units);

}  // namespace heddle::ptx
