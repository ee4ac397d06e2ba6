#pragma once

#include "library/call.h"

namespace heddle::software {

// Carries out a cuFFT call that library::demand() has found nothing wrong with, and whose operands can be reached.
// Calculated in double precision and rounded once, in n log n steps for every size: powers of two by Cooley and Tukey's
// algorithm, others by Bluestein's.
void run_cufft(const library::Call& call);

}  // namespace heddle::software
