#pragma once

// What to do about errors that say little by themselves: things that left CUDA, libraries that are not installed.

#include <string>
#include <vector>

namespace heddle::compiler {

// Lines for the user, from what nvcc and the host compiler wrote while they failed; each piece of advice once.
std::vector<std::string> adviceFor(const std::string &Errors);

} // namespace heddle::compiler
