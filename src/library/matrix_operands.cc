// What cuBLAS's level 3 describes.

#include <algorithm>

#include "library/operand_reader.h"

namespace heddle::library::cublas {
namespace {

struct Product {
  bool a_transposed = false, b_transposed = false;
  uint64_t m = 0, n = 0, k = 0;

  explicit Product(OperandReader& in)
      : a_transposed(in.transposed()), b_transposed(in.transposed()), m(in.size()), n(in.size()), k(in.size()) {}
  uint64_t a_rows() const { return a_transposed ? k : m; }
  uint64_t a_columns() const { return a_transposed ? m : k; }
  uint64_t b_rows() const { return b_transposed ? n : k; }
  uint64_t b_columns() const { return b_transposed ? k : n; }
};

struct Combination {
  DataType ab, c, compute;
};

// cublasGemmEx's table of types, as far as this serves it; A and B are of one type.
void check_types(OperandReader& in, DataType a, DataType b, DataType c, DataType compute) {
  using enum DataType;
  static constexpr Combination kPossible[] = {
      {kF16, kF16, kF16},  {kI8, kI32, kI32},  {kBf16, kBf16, kF32}, {kF16, kF16, kF32}, {kI8, kF32, kF32},
      {kBf16, kF32, kF32}, {kF16, kF32, kF32}, {kF32, kF32, kF32},   {kF64, kF64, kF64}, {kC32, kC32, kF32},
      {kC64, kC64, kF64},  {kC32, kC32, kC32}, {kC64, kC64, kC64}};
  const bool possible = a == b && std::any_of(std::begin(kPossible), std::end(kPossible), [&](const Combination& each) {
                          return each.ab == a && each.c == c && each.compute == compute;
                        });
  if (!possible)
    in.not_supported("matrices of types %d, %d and %d are not multiplied in type %d", static_cast<int>(a),
                     static_cast<int>(b), static_cast<int>(c), static_cast<int>(compute));
}

// What a function with types by argument calculates in: its own type, or the argument that says it.
void read_compute(OperandReader& in, const Matrix& a, const Matrix& b, const Matrix& c) {
  if (in.next() != Kind::kCompute) return check_types(in, a.type, b.type, c.type, type_of(in.function().element));
  const auto type = compute_type(static_cast<int>(in.take(Kind::kCompute)));
  (void)in.take(Kind::kAlgorithm);
  if (!type) return in.not_supported("%s", type.error().text.c_str());
  check_types(in, a.type, b.type, c.type, type->type);
}

// C = alpha op(A) op(B) + beta C: one, or many a stride apart, or many by arrays of addresses.
void product(OperandReader& in, Batch::By by, bool typed) {
  const Product of(in);
  const auto matrix = [&](Kind kind) {
    Matrix read = typed ? in.typed_matrix_at(kind) : in.matrix_at(kind);
    if (by == Batch::By::kStrides) in.strided(read);
    return read;
  };
  in.scalar();
  const Matrix a = matrix(Kind::kIn), b = matrix(Kind::kIn);
  in.scalar();
  const Matrix c = matrix(Kind::kOut);
  const Batch batch{by, by == Batch::By::kOne ? 1 : in.size()};
  if (typed) read_compute(in, a, b, c);
  in.add(a, of.a_rows(), of.a_columns(), Kind::kIn, batch);
  in.add(b, of.b_rows(), of.b_columns(), Kind::kIn, batch);
  in.add(c, of.m, of.n, Kind::kOut, batch);
  in.work(real(of.m, of.n, of.k) * static_cast<double>(batch.count));
  in.tiles(of.m, of.n, batch.count);
}

// C = alpha A B + beta C, A symmetric.
void symmetric_product(OperandReader& in) {
  const bool left = in.left();
  in.fill();
  const uint64_t m = in.size(), n = in.size(), order = left ? m : n;
  in.scalar();
  in.matrix(order, order, Kind::kIn);
  in.matrix(m, n, Kind::kIn);
  in.scalar();
  in.matrix(m, n, Kind::kOut);
  in.work(real(m, n, order));
  in.tiles(m, n);
}

// Of an update op(A) op(A)': conjugated where it is Hermitian, transposed where it is symmetric, either where all is
// real.
bool update_transposed(OperandReader& in) {
  const uint32_t operation = in.operation();
  const bool hermitian = in.function().has(Kind::kRealScalar);
  if (is_complex(in.element()) && operation == (hermitian ? 1u : 2u)) in.refuse("transpose is %u", operation);
  return operation != 0;
}

// C = alpha op(A) op(A)' + beta C; with two matrices, their product and maybe its transpose.
void symmetric_update(OperandReader& in, Shape shape) {
  const bool typed = shape == Shape::kSyrkEx;
  const auto matrix = [&](Kind kind) { return typed ? in.typed_matrix_at(kind) : in.matrix_at(kind); };
  in.fill();
  const bool transposed = update_transposed(in);
  const uint64_t n = in.size(), k = in.size(), rows = transposed ? k : n, columns = transposed ? n : k;
  in.scalar();
  const Matrix a = matrix(Kind::kIn);
  in.add(a, rows, columns, Kind::kIn);
  if (shape == Shape::kSyr2k || shape == Shape::kSyrkx) in.matrix(rows, columns, Kind::kIn);
  in.scalar();
  const Matrix c = matrix(Kind::kOut);
  if (typed) check_types(in, a.type, a.type, c.type, type_of(in.function().element));
  in.add(c, n, n, Kind::kOut);
  in.work(real(n, n, k) * (shape == Shape::kSyr2k ? 1 : 0.5));
  in.tiles(n, n);
}

// C = alpha op(A) B with a triangular A (trmm); B becomes the solution of op(A) X = alpha B (trsm).
void triangular_product(OperandReader& in, Shape shape) {
  const bool left = in.left();
  in.fill();
  (void)in.transposed();
  in.diagonal();
  const uint64_t m = in.size(), n = in.size(), order = left ? m : n;
  in.scalar();
  in.matrix(order, order, Kind::kIn);
  in.matrix(m, n, shape == Shape::kTrmm ? Kind::kIn : Kind::kOut);
  if (shape == Shape::kTrmm) in.matrix(m, n, Kind::kOut);
  in.work(real(m, n, order) / 2);
  in.tiles(m, n);
}

// The same, once for each of a batch of triangular systems.
void triangular_systems(OperandReader& in) {
  const bool left = in.left();
  in.fill();
  (void)in.transposed();
  in.diagonal();
  const uint64_t m = in.size(), n = in.size(), order = left ? m : n;
  in.scalar();
  const Matrix a = in.matrix_at(Kind::kIn), b = in.matrix_at(Kind::kOut);
  const Batch batch{Batch::By::kArrays, in.size()};
  in.add(a, order, order, Kind::kIn, batch);
  in.add(b, m, n, Kind::kOut, batch);
  in.work(real(m, n, order) / 2 * static_cast<double>(batch.count));
  in.tiles(m, n, batch.count);
}

// C = alpha op(A) + beta op(B).
void sum(OperandReader& in) {
  const bool a_transposed = in.transposed(), b_transposed = in.transposed();
  const uint64_t m = in.size(), n = in.size();
  in.scalar();
  in.matrix(a_transposed ? n : m, a_transposed ? m : n, Kind::kIn);
  in.scalar();
  in.matrix(b_transposed ? n : m, b_transposed ? m : n, Kind::kIn);
  in.matrix(m, n, Kind::kOut);
  in.work(real(m, n));
  in.tiles(m, n);
}

// C = A diag(x) or diag(x) A.
void scaled(OperandReader& in) {
  const bool left = in.left();
  const uint64_t m = in.size(), n = in.size();
  in.matrix(m, n, Kind::kIn);
  in.vector(left ? m : n, Kind::kIn);
  in.matrix(m, n, Kind::kOut);
  in.work(real(m, n));
  in.tiles(m, n);
}

// A triangle from packed form into a matrix, or from there.
void packing(OperandReader& in, bool packs) {
  in.fill();
  const uint64_t n = in.size();
  if (!packs) in.packed(n, Kind::kIn);
  in.matrix(n, n, packs ? Kind::kIn : Kind::kOut);
  if (packs) in.packed(n, Kind::kOut);
  in.tiles(n, n);
}

}  // namespace

void read_matrices(OperandReader& in, Shape shape) {
  switch (shape) {
    case Shape::kGemm:
    case Shape::kSgemmEx:
    case Shape::kGemmEx:
      return product(in, Batch::By::kOne, shape != Shape::kGemm);
    case Shape::kGemmStrided:
    case Shape::kGemmStridedEx:
      return product(in, Batch::By::kStrides, shape == Shape::kGemmStridedEx);
    case Shape::kGemmBatched:
    case Shape::kGemmBatchedEx:
      return product(in, Batch::By::kArrays, shape == Shape::kGemmBatchedEx);
    case Shape::kSymm:
      return symmetric_product(in);
    case Shape::kSyrk:
    case Shape::kSyrkEx:
    case Shape::kSyr2k:
    case Shape::kSyrkx:
      return symmetric_update(in, shape);
    case Shape::kTrmm:
    case Shape::kTrsm:
      return triangular_product(in, shape);
    case Shape::kTrsmBatched:
      return triangular_systems(in);
    case Shape::kGeam:
      return sum(in);
    case Shape::kDgmm:
      return scaled(in);
    default:
      return packing(in, shape == Shape::kTrttp);
  }
}

}  // namespace heddle::library::cublas
