#pragma once

#include "device/software/libraries/call_arguments.h"
#include "device/software/libraries/openblas.h"

namespace heddle::software {

// cuBLAS's batches of LAPACK's functions (getrfBatched and its kin), by the LAPACK in OpenBLAS.
void run_factorization(const library::cublas::Function& function, const CallArguments& arguments, const Openblas& blas);

}  // namespace heddle::software
