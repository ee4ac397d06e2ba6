#pragma once

// What `heddle cc` makes of nvcc's arguments. Pure: what it needs to know of the machine comes in Tools.

#include "driver/Options.h"

#include <functional>
#include <utility>

namespace heddle::compiler {

struct Tools {
  std::string Nvcc;                // NVIDIA's compiler
  std::string Clang;               // clang++ 19, the host compiler
  std::string Plugin;              // heddle-pass.so
  std::string RuntimeDirectory;    // where the toolkit's libcudart.so lies; empty: not known
  std::vector<unsigned> Supported; // architectures that nvcc compiles for, ascending; empty: not known
  // Whether clang takes a flag that was written for another host compiler; none: all are taken.
  std::function<bool(const std::string &Flag)> Takes;
};

struct Command {
  Arguments Line;                 // without nvcc itself
  std::vector<std::string> Notes; // what was changed of what the user wrote, a line each
};

// The arguments with clang and the pass as host compiler, and with what the toolkit no longer knows replaced:
// architectures by its oldest one, removed functions of the runtime by what took their place. What other host
// compilers let pass is no error, and optimisation that the user did not ask for takes nothing from programs that
// relied on its absence. Option files must have been expanded.
Command commandFor(const Arguments &Given, const Tools &With);

// Whether any argument is an input, so that something is compiled or linked.
bool hasInput(const Arguments &Given);

// The same as two variables that nvcc reads, for builds whose command cannot be changed.
std::vector<std::pair<std::string, std::string>> environmentFor(const Tools &With);

} // namespace heddle::compiler
