#pragma once

#include "target.h"

namespace heddle::conformance {

// The first GPU that this process sees; null where there is none.
std::unique_ptr<Target> cuda_target();

}  // namespace heddle::conformance
