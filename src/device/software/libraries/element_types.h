#pragma once

#include <complex>
#include <string>

#include "library/cublas.h"

// The four types that a BLAS calculates in: as C++ has them, and in the names of its subroutines.
namespace heddle::software {

// Calls `body` with a zero of the type.
template <class Body>
void with_type(library::cublas::DataType type, Body&& body) {
  switch (type) {
    case library::cublas::DataType::kF64:
      return body(double{});
    case library::cublas::DataType::kC32:
      return body(std::complex<float>{});
    case library::cublas::DataType::kC64:
      return body(std::complex<double>{});
    default:
      return body(float{});
  }
}

// symbol(kF64, "gemm_"): "dgemm_".
inline std::string symbol(library::cublas::DataType type, const char* base) {
  switch (type) {
    case library::cublas::DataType::kF64:
      return std::string("d") + base;
    case library::cublas::DataType::kC32:
      return std::string("c") + base;
    case library::cublas::DataType::kC64:
      return std::string("z") + base;
    default:
      return std::string("s") + base;
  }
}

}  // namespace heddle::software
