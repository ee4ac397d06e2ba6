#pragma once

#include <span>
#include <string_view>

#include "device/software/simt/op.h"

namespace heddle::software {

// A function that device code calls and the driver provides. Op::extra lists where the caller has the arguments in its
// local memory, then the result (Op::kNone without one).
struct NativeFunction {
  std::string_view name;
  uint32_t arguments;
  Handler handler;
};

// All of them.
std::span<const NativeFunction> native_functions();
// By name: vprintf, __assertfail, malloc, free; null for others.
const NativeFunction* find_native(std::string_view name);

}  // namespace heddle::software
