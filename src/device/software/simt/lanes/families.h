#pragma once

#include <span>

#include "device/software/simt/row.h"

namespace heddle::software::HEDDLE_LANES {

// Each family's rows; each is a file of its own.
std::span<const Row> integer_rows();
std::span<const Row> multiply_rows();
std::span<const Row> carry_rows();
std::span<const Row> bit_rows();
std::span<const Row> float_rows();
std::span<const Row> float_function_rows();
std::span<const Row> convert_to_integer_rows();
std::span<const Row> convert_to_float_rows();
std::span<const Row> compare_rows();
std::span<const Row> move_rows();
std::span<const Row> load_rows();
std::span<const Row> store_rows();
std::span<const Row> warp_rows();
std::span<const Row> half_rows();
std::span<const Row> half_conversion_rows();

uint64_t run_warp(Warp& warp, uint64_t budget);
void run_guarded(Warp& warp, const Op& op);

}  // namespace heddle::software::HEDDLE_LANES
