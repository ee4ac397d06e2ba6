#pragma once

#include <string_view>

#include "core/result.h"
#include "device/software/ptx/ast.h"

namespace heddle::ptx {

// Parses a PTX module. An error names the line. A function whose body uses a form that is not known does not fail the
// module: Function::error says what it was.
Result<Module> parse(std::string_view source);

}  // namespace heddle::ptx
