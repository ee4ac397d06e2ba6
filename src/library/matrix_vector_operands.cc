// What cuBLAS's level 2 describes.

#include <algorithm>

#include "library/operand_reader.h"

namespace heddle::library::cublas {
namespace {

// y = alpha op(A) x + beta y.
void general_vector(OperandReader& in, bool banded) {
  const bool transposed = in.transposed();
  const uint64_t m = in.size(), n = in.size();
  const uint64_t below = banded ? in.size() : 0, above = banded ? in.size() : 0;
  in.scalar();
  in.matrix(banded ? below + above + 1 : m, n, Kind::kIn);
  in.vector_of_level_2(transposed ? m : n, Kind::kIn);
  in.scalar();
  in.vector_of_level_2(transposed ? n : m, Kind::kOut);
  in.work(banded ? real(below + above + 1, n) : real(m, n));
  in.elements(std::max(m, n));
}

void rank_1(OperandReader& in) {
  const uint64_t m = in.size(), n = in.size();
  in.scalar();
  in.vector_of_level_2(m, Kind::kIn);
  in.vector_of_level_2(n, Kind::kIn);
  in.matrix(m, n, Kind::kOut);
  in.work(real(m, n));
  in.tiles(m, n);
}

// y = alpha A x + beta y with a symmetric A: whole, a band, packed.
void symmetric_vector(OperandReader& in, Shape shape) {
  in.fill();
  const uint64_t n = in.size();
  const uint64_t band = shape == Shape::kSbmv ? in.size() : 0;
  in.scalar();
  if (shape == Shape::kSpmv) in.packed(n, Kind::kIn);
  if (shape != Shape::kSpmv) in.matrix(shape == Shape::kSbmv ? band + 1 : n, n, Kind::kIn);
  in.vector_of_level_2(n, Kind::kIn);
  in.scalar();
  in.vector_of_level_2(n, Kind::kOut);
  in.work(shape == Shape::kSbmv ? real(2 * band + 1, n) : real(n, n));
  in.elements(n);
}

// A += alpha x x' or alpha (x y' + y x').
void symmetric_rank(OperandReader& in, Shape shape) {
  in.fill();
  const uint64_t n = in.size();
  in.scalar();
  in.vector_of_level_2(n, Kind::kIn);
  if (shape == Shape::kSyr2 || shape == Shape::kSpr2) in.vector_of_level_2(n, Kind::kIn);
  if (shape == Shape::kSpr || shape == Shape::kSpr2) in.packed(n, Kind::kOut);
  if (shape == Shape::kSyr || shape == Shape::kSyr2) in.matrix(n, n, Kind::kOut);
  in.work(real(n, n));
  in.tiles(n, n);
}

// The same, once for each of a batch.
void general_vectors(OperandReader& in, Batch::By by) {
  const bool strided = by == Batch::By::kStrides;
  const DataType operand = in.element(), result = result_type(in.function().element);
  const bool transposed = in.transposed();
  const uint64_t m = in.size(), n = in.size();
  in.scalar();
  Matrix a = in.matrix_at(Kind::kIn);
  if (strided) in.strided(a);
  Vector x = in.matrix_at(Kind::kIn);
  if (strided) in.strided(x);
  in.scalar();
  Vector y = in.matrix_at(Kind::kOut);
  if (strided) in.strided(y);
  const Batch batch{by, in.size()};
  a.type = x.type = operand;
  y.type = result;
  if (x.ld == 0 || y.ld == 0) in.refuse("the distance between a vector's elements is 0");
  in.add(a, m, n, Kind::kIn, batch);
  in.add_vector(x, transposed ? m : n, Kind::kIn, batch);
  in.add_vector(y, transposed ? n : m, Kind::kOut, batch);
  in.work(real(m, n, batch.count));
  in.elements(std::max(m, n) * std::min<uint64_t>(batch.count, UINT32_MAX));
}

// x = op(A) x, or its inverse.
void triangular_vector(OperandReader& in, Shape shape) {
  in.fill();
  (void)in.transposed();
  in.diagonal();
  const uint64_t n = in.size();
  const uint64_t band = shape == Shape::kTriangularBand ? in.size() : 0;
  if (shape == Shape::kTriangularPacked) in.packed(n, Kind::kIn);
  if (shape != Shape::kTriangularPacked) in.matrix(shape == Shape::kTriangularBand ? band + 1 : n, n, Kind::kIn);
  in.vector_of_level_2(n, Kind::kOut);
  in.work(shape == Shape::kTriangularBand ? real(band + 1, n) : real(n, n) / 2);
  in.elements(n);
}

}  // namespace

void read_matrix_vector(OperandReader& in, Shape shape) {
  switch (shape) {
    case Shape::kGemv:
    case Shape::kGbmv:
      return general_vector(in, shape == Shape::kGbmv);
    case Shape::kGemvStrided:
      return general_vectors(in, Batch::By::kStrides);
    case Shape::kGemvBatched:
      return general_vectors(in, Batch::By::kArrays);
    case Shape::kGer:
      return rank_1(in);
    case Shape::kSymv:
    case Shape::kSbmv:
    case Shape::kSpmv:
      return symmetric_vector(in, shape);
    case Shape::kSyr:
    case Shape::kSyr2:
    case Shape::kSpr:
    case Shape::kSpr2:
      return symmetric_rank(in, shape);
    default:
      return triangular_vector(in, shape);
  }
}

}  // namespace heddle::library::cublas
