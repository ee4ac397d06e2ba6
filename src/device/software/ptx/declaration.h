#pragma once

#include <functional>
#include <optional>
#include <span>

#include "device/software/ptx/cursor.h"

namespace heddle::ptx {

// Parses what follows a state space directive: "[.align 8] .b8 name[24] [= {...}]", without the closing semicolon.
// Errors stick to the cursor.
Variable parse_variable(Cursor& cursor, Space space);

// ".global" and so on, if the cursor stands at one; steps over it.
std::optional<Space> take_space(Cursor& cursor);

// The address of a symbol (a variable, or a function whose address is stored), if it has one.
using SymbolResolver = std::function<std::optional<uint64_t>(std::string_view)>;

// Writes what a .global or .const variable holds when its module is loaded. `out` is variable.size bytes.
// Fails if an initialiser names a symbol that `resolve` does not know.
Status write_initial_value(const Variable& variable, const SymbolResolver& resolve, std::span<std::byte> out);

}  // namespace heddle::ptx
