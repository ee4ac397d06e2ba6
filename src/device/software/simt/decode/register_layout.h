#pragma once

#include <cstdint>
#include <vector>

#include "device/software/ptx/ast.h"
#include "device/software/simt/row.h"

namespace heddle::software {

// Where a function's registers lie in its frame. Registers whose lives do not overlap share a place: PTX gives every
// value a register of its own, and a frame for all of them would not stay in the host's cache.
struct RegisterLayout {
  std::vector<uint32_t> offsets;  // by register
  uint32_t bytes = 0;             // a multiple of 64
  uint32_t words_per_thread = 0;  // 32-bit registers in use at once
};

// `kept`, by register: those that share their places with no others. Empty: none.
RegisterLayout lay_out_registers(const ptx::Function& function, const std::vector<bool>& kept = {});

// What a register of this type takes; kNone for types that have none here (128 bits).
Width register_width(ptx::Type type);
uint32_t register_bytes(Width width);

}  // namespace heddle::software
