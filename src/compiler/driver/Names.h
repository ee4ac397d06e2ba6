#pragma once

// Names of kernels as a person would say them.

#include <string>

namespace heddle::compiler {

// What a demangled name says without its return type, parameters, template arguments and the namespaces in which
// libraries keep their versions apart: "void cub::CUB_200200_SM_90::Scan<int, Policy<4>>(int*)" is "cub::Scan<...>".
std::string shortNameOf(const std::string &Demangled);

} // namespace heddle::compiler
