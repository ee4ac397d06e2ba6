#pragma once

// The table of `heddle cc --report`: what became of each launch.

#include <string>

namespace heddle::compiler {

// Reads the lines that the pass wrote (pass/Report.cpp) and prints the table and a summary. Copies of a launch that
// came of inlining are one line with the best of their verdicts: the function that was inlined stays, and nobody calls
// it. Kernels are named shortly (Names.h), or in full.
std::string tableOf(const std::string &Lines, bool FullNames = false);

} // namespace heddle::compiler
