#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "image/ptx_code.h"
#include "image/ptx_declarations.h"

namespace heddle::image {

// The functions and variables of separately compiled units that are linked together, by name. Bodies are read when they
// are first reached. What it says points into the texts of the units, which outlive it.
class PtxProgram {
 public:
  struct Function {
    const PtxFunction* declared = nullptr;
    PtxCode code;
    std::unordered_map<std::string_view, size_t> occurrences;  // of names among the operands
    std::unordered_set<std::string_view> own;                  // shared and local memory declared in its body
  };

  explicit PtxProgram(std::span<const PtxDeclarations> units);

  // Null where there is none of that name.
  Function* find(std::string_view name);
  bool has_function(std::string_view name) const { return functions_.contains(name); }
  const PtxVariable* variable(std::string_view name) const;
  bool allocates() const { return allocates_; }  // declares device malloc

 private:
  std::unordered_map<std::string_view, const PtxVariable*> variables_;
  std::unordered_map<std::string_view, Function> functions_;
  std::unordered_set<const Function*> read_;
  bool allocates_ = false;
};

}  // namespace heddle::image
