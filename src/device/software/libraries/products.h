#pragma once

#include "device/software/libraries/openblas.h"
#include "library/cublas.h"

// What cuBLAS has and a BLAS has not: products of other types and of batches, and a few of its own operations.
namespace heddle::software {

struct StoredMatrix {
  library::cublas::DataType type{};
  void* data = nullptr;
  int32_t ld = 1;
};

// C = alpha op(A) op(B) + beta C, op(A) of m x k, calculated in type `compute`, which alpha and beta have.
struct ProductCall {
  char a_op = 'N', b_op = 'N';
  int32_t m = 0, n = 0, k = 0;
  const void *alpha = nullptr, *beta = nullptr;
  StoredMatrix a, b, c;
  library::cublas::DataType compute{};
};
void multiply(const ProductCall& call, const Openblas& blas);

// y = alpha op(A) x + beta y, A of m x n; `ld` of the vectors is their step.
struct VectorProductCall {
  char op = 'N';
  int32_t m = 0, n = 0;
  const void *alpha = nullptr, *beta = nullptr;
  StoredMatrix a, x, y;
  library::cublas::DataType compute{};
};
void multiply_vector(const VectorProductCall& call, const Openblas& blas);

// C = alpha op(A) op(B)' + beta C, of which only the lower or upper triangle is stored. Of a Hermitian one the diagonal
// is real.
void symmetric_multiply(const ProductCall& call, bool upper, bool hermitian, const Openblas& blas);

// C = alpha op(A) + beta op(B); m x n.
void add_matrices(const ProductCall& call);

// C = A diag(x), or diag(x) A.
struct ScaleCall {
  bool left = false;
  int32_t m = 0, n = 0;
  StoredMatrix a, c;
  const void* x = nullptr;
  int32_t step = 1;
};
void scale_matrix(const ScaleCall& call);

}  // namespace heddle::software
