#pragma once

#include "library/curand.h"

// cuRAND's quasi random generators on software devices: heddle's own Sobol' sequences (sobol.h).
namespace heddle::library::curand {

// The points of the first dimension, then those of the next, and so on: a call's count is a multiple of the dimensions.
void generate_quasi_random(Function function, const Draw& draw, void* to);
// What curandGetDirectionVectors32 and its kin lead to: `draw.count` elements of the table.
void write_table(Function function, const Draw& draw, void* to);

}  // namespace heddle::library::curand
