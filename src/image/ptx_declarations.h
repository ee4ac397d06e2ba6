#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "image/module_info.h"

// What a PTX module declares, without its code. All views point into the text.
namespace heddle::image {

enum class StateSpace : uint8_t { kGlobal, kConstant, kShared, kLocal };

struct PtxVariable {
  std::string_view name;
  StateSpace space = StateSpace::kGlobal;
  uint64_t bytes = 0;
  uint32_t alignment = 1;
  bool managed = false;
  bool holds_addresses = false;  // initialised with those of variables or functions
};

struct PtxFunction {
  std::string_view name;
  bool entry = false;
  std::vector<Parameter> parameters;  // of an entry
  std::vector<std::string_view> parameter_names;
  std::vector<std::string_view> result_names;  // of a function that is no entry
  uint32_t parameter_bytes = 0;
  uint32_t max_threads = kMaxThreadsPerBlock;
  std::vector<PtxVariable> memory;  // .shared and .local declared in its body
  std::string_view body;
};

struct PtxDeclarations {
  std::vector<PtxVariable> variables;      // at module level, without .extern ones
  std::vector<PtxFunction> functions;      // those with a body
  bool allocates = false, prints = false;  // malloc, vprintf are declared
};

// Reads PTX ISA 9.0 sections 5 (state spaces, types, variables) and 11 (directives); unknown directives are passed
// over. kCorrupt for text that is not PTX, kNotSupported for a type that is not known; both with the line. May throw
// std::bad_alloc.
Result<PtxDeclarations> parse_declarations(std::string_view ptx);

}  // namespace heddle::image
