#pragma once

// nvcc's own options, as far as their form goes: which of them take a value, and what the host compiler is handed.

#include <string>
#include <vector>

namespace heddle::compiler {

using Arguments = std::vector<std::string>;

// Whether the option's value is the argument behind it: "-o" and "--output-file" do, "-o=x", "-Ipath" and "-c" do not.
bool takesNext(const std::string &Option);

// Whether the argument is one of the option's spellings with its value in the same word: "NAME=value".
bool hasValue(const std::string &Argument, const char *Name, std::string &Value);

// A list of nvcc's, as in -Xcompiler "-Wall,-O2 -fPIC": words that commas or spaces separate, quotes taken away.
Arguments wordsOf(const std::string &List);

// Each "@file" and each --options-file is replaced by the words in it, as nvcc reads them. Returns what went wrong;
// empty: nothing.
std::string expandFiles(Arguments &Given);

} // namespace heddle::compiler
