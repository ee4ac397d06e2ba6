#pragma once

#include <span>

#include "device/software/simt/row.h"

namespace heddle::software::common {

// Families that gain nothing from wider vector instructions and are built once.
std::span<const Row> atomic_rows();
std::span<const Row> special_rows();

}  // namespace heddle::software::common
