#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "image/ptx_cursor.h"

namespace heddle::image {

// What stands before the name in a .param, .shared, .local, .global or .const statement.
struct PtxType {
  uint32_t bytes = 0;  // of one element
  uint32_t alignment = 1;
  bool managed = false;
  bool opaque = false;  // a .texref, .samplerref or .surfref, which occupies no memory that programs address
};

struct PtxDeclarator {
  std::string_view name;
  uint64_t bytes = 0;
  bool holds_addresses = false;  // its initializer names variables or functions
};

// Reads attributes and type up to the name (".align 4 .b8").
Result<PtxType> parse_type(PtxCursor& cursor);

// Reads name, dimensions and initializer ("x[12] = {1, 2}"), up to the ',' ';' or ')' that ends them. An array without
// a size has that of its initializer, and none where there is no initializer (.extern .shared x[]).
Result<PtxDeclarator> parse_declarator(PtxCursor& cursor, const PtxType& type);

// Reads a number of PTX ("12", "0x40", "7U").
Result<uint64_t> parse_number(PtxCursor& cursor);

}  // namespace heddle::image
