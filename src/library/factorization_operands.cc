// What cuBLAS's batches of LAPACK's functions describe: matrices behind arrays of addresses, integers side by side, all
// in device memory.

#include <algorithm>

#include "library/operand_reader.h"

namespace heddle::library::cublas {
namespace {

constexpr uint64_t kLargestInverse = 32;  // of cublas<t>matinvBatched

Batch arrays(OperandReader& in) {
  return {Batch::By::kArrays, in.size()};
}

void cost(OperandReader& in, double pairs, uint64_t rows, uint64_t columns, const Batch& batch) {
  in.work(pairs * static_cast<double>(batch.count));
  in.tiles(rows, columns, batch.count);
}

// A becomes its factors L and U. Without pivots none are looked for.
void factorize(OperandReader& in) {
  const uint64_t n = in.size();
  const Matrix a = in.matrix_at(Kind::kOut);
  const uint64_t pivots = in.take(Kind::kOut), failures = in.take(Kind::kOut);
  const Batch batch = arrays(in);
  in.add(a, n, n, Kind::kOut, batch);
  in.add_integers(pivots, n * batch.count, Kind::kOut, true);
  in.add_integers(failures, batch.count, Kind::kOut, false);
  cost(in, real(n, n, n) / 3, n, n, batch);
}

// C = the inverse of what was factorized.
void invert(OperandReader& in) {
  const uint64_t n = in.size();
  const Matrix a = in.matrix_at(Kind::kIn);
  const uint64_t pivots = in.take(Kind::kIn);
  const Matrix c = in.matrix_at(Kind::kOut);
  const uint64_t failures = in.take(Kind::kOut);
  const Batch batch = arrays(in);
  in.add(a, n, n, Kind::kIn, batch);
  in.add_integers(pivots, n * batch.count, Kind::kIn, true);
  in.add(c, n, n, Kind::kOut, batch);
  in.add_integers(failures, batch.count, Kind::kOut, false);
  cost(in, real(n, n, n), n, n, batch);
}

// B becomes the solution of op(A) X = B, where A was factorized.
void solve(OperandReader& in) {
  (void)in.transposed();
  const uint64_t n = in.size(), columns = in.size();
  const Matrix a = in.matrix_at(Kind::kIn);
  const uint64_t pivots = in.take(Kind::kIn);
  const Matrix b = in.matrix_at(Kind::kOut);
  in.info();
  const Batch batch = arrays(in);
  in.add(a, n, n, Kind::kIn, batch);
  in.add_integers(pivots, n * batch.count, Kind::kIn, true);
  in.add(b, n, columns, Kind::kOut, batch);
  cost(in, real(n, n, columns), n, columns, batch);
}

void invert_small(OperandReader& in) {
  const uint64_t n = in.size();
  if (n > kLargestInverse) in.refuse("matrices of %llu rows, 32 are the most", static_cast<unsigned long long>(n));
  const Matrix a = in.matrix_at(Kind::kIn), inverse = in.matrix_at(Kind::kOut);
  const uint64_t failures = in.take(Kind::kOut);
  const Batch batch = arrays(in);
  in.add(a, n, n, Kind::kIn, batch);
  in.add(inverse, n, n, Kind::kOut, batch);
  in.add_integers(failures, batch.count, Kind::kOut, false);
  cost(in, real(n, n, n), n, n, batch);
}

// A becomes R and the reflectors of Q, whose factors go to Tau.
void orthogonalize(OperandReader& in) {
  const uint64_t m = in.size(), n = in.size();
  const Matrix a = in.matrix_at(Kind::kOut);
  const uint64_t factors = in.take(Kind::kOut);
  in.info();
  const Batch batch = arrays(in);
  in.add(a, m, n, Kind::kOut, batch);
  in.add_dense(factors, std::min(m, n), Kind::kOut, batch);
  cost(in, real(m, n, n), m, n, batch);
}

// C becomes the X that op(A) X comes nearest to C with. Not more unknowns than equations.
void least_squares(OperandReader& in) {
  const bool transposed = in.transposed();
  const uint64_t m = in.size(), n = in.size(), columns = in.size();
  if (transposed) in.not_supported("A is taken as it stands only");
  if (m < n)
    in.not_supported("%llu equations of %llu unknowns", static_cast<unsigned long long>(m),
                     static_cast<unsigned long long>(n));
  const Matrix a = in.matrix_at(Kind::kOut), c = in.matrix_at(Kind::kOut);
  in.info();
  const uint64_t failures = in.take(Kind::kOut);
  const Batch batch = arrays(in);
  in.add(a, m, n, Kind::kOut, batch);
  in.add(c, std::max(m, n), columns, Kind::kOut, batch);
  in.add_integers(failures, batch.count, Kind::kOut, true);
  cost(in, real(m, n, n + columns), m, n, batch);
}

}  // namespace

void read_factorizations(OperandReader& in, Shape shape) {
  switch (shape) {
    case Shape::kGetrf:
      return factorize(in);
    case Shape::kGetri:
      return invert(in);
    case Shape::kGetrs:
      return solve(in);
    case Shape::kMatinv:
      return invert_small(in);
    case Shape::kGeqrf:
      return orthogonalize(in);
    default:
      return least_squares(in);
  }
}

}  // namespace heddle::library::cublas
