// What the arguments of cuBLAS's functions describe: which memory, how much of it, how much work. After NVIDIA's
// documentation of each function: matrices are stored by columns, `ld` elements from one to the next.

#include <algorithm>
#include <optional>

#include "library/cublas.h"

namespace heddle::library::cublas {
namespace {

constexpr uint64_t kMostBytes = 1ull << 48;  // beyond any memory
constexpr uint64_t kTile = 64;               // a block of a matrix product: that many rows and columns of the result

double real(uint64_t a, uint64_t b = 1, uint64_t c = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

struct Matrix {
  uint64_t address = 0;
  int64_t ld = 0, stride = 0;
  DataType type = DataType::kF32;
};

// Reads the arguments in order, and collects what they ask for. The first that makes no sense ends it: what is read
// afterwards is zero.
class Reader {
 public:
  Reader(const Function& function, const Setting& setting, std::span<const uint64_t> arguments)
      : function_(function), setting_(setting), arguments_(arguments), type_(type_of(function.element)) {}

  bool transposed() { return take_below(Kind::kOp, 3, "transpose") != 0; }
  void fill() { (void)take_below(Kind::kFill, 2, "uplo"); }
  bool left() { return take_below(Kind::kSide, 2, "side") == 0; }
  void diagonal() { (void)take_below(Kind::kDiag, 2, "diag"); }
  // A size that may not be negative.
  uint64_t size() {
    const int64_t value = take_dim();
    if (value < 0) refuse("a size is %lld", static_cast<long long>(value));
    return value < 0 ? 0 : static_cast<uint64_t>(value);
  }
  // One of level 1, where less than nothing is nothing.
  uint64_t length() { return static_cast<uint64_t>(std::max<int64_t>(take_dim(), 0)); }

  void scalar() {
    const uint64_t address = take(Kind::kScalar);
    if (setting_.scalars_on_device) add(address, scalar_bytes(function_, arguments_), false);
  }
  void parameters() {
    const uint64_t address = take(Kind::kParameters);
    if (setting_.scalars_on_device) add(address, 5 * element_bytes(), false);
  }
  void answer(uint64_t count = 1) { add(take(Kind::kAnswer), count * answer_bytes(function_, setting_.wide), true); }
  void input() { add(take(Kind::kIn), element_bytes(), false); }

  // Each an operand as it stands among the arguments.
  void vector(uint64_t count, Kind kind) {
    const uint64_t address = take(kind);
    const int64_t step = take_dim();
    const uint64_t distance = step < 0 ? -static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
    add(address, bytes(count > 0 ? std::optional(count - 1) : std::nullopt, distance, 1), kind == Kind::kOut);
  }
  // Level 2 knows no vector that stands still.
  void vector_of_level_2(uint64_t count, Kind kind) {
    const uint64_t address_at = at_;
    vector(count, kind);
    if (!problem_ && arguments_[address_at + 1] == 0) refuse("the distance between a vector's elements is 0");
  }
  void matrix(uint64_t rows, uint64_t columns, Kind kind) { add(matrix_at(kind), rows, columns, kind); }
  void packed(uint64_t n, Kind kind) {
    const uint64_t address = take(kind);
    uint64_t elements;
    if (n > UINT32_MAX || __builtin_mul_overflow(n, n + 1, &elements)) return refuse("a matrix is too large");
    if (n > 0) add(address, bytes(elements / 2 - 1, 1, 1), kind == Kind::kOut);
  }

  // Pieces of the batched and mixed functions.
  Matrix matrix_at(Kind kind) {
    Matrix read;
    read.type = type_;
    read.address = take(kind);
    read.ld = take_dim();
    return read;
  }
  Matrix typed_matrix_at(Kind kind) {
    Matrix read;
    read.address = take(kind);
    read.type = static_cast<DataType>(static_cast<int>(take(Kind::kType)));
    read.ld = take_dim();
    if (bytes_of(read.type) == 0) not_supported("matrices of type %d are not supported", static_cast<int>(read.type));
    return read;
  }
  void strided(Matrix& matrix) { matrix.stride = static_cast<int64_t>(take(Kind::kStride)); }
  void compute(const Matrix& a, const Matrix& b, const Matrix& c) {
    const auto type = compute_type(static_cast<int>(take(Kind::kCompute)));
    (void)take(Kind::kAlgorithm);
    if (!type) return not_supported("%s", type.error().text.c_str());
    check_types(a.type, b.type, c.type, type->type);
  }
  void check_types(DataType a, DataType b, DataType c, DataType compute);

  void add(const Matrix& matrix, uint64_t rows, uint64_t columns, Kind kind, uint64_t batch = 1) {
    if (!check_ld(matrix, rows)) return;
    if (rows == 0 || columns == 0 || batch == 0) return;
    type_ = matrix.type;
    const uint64_t one = bytes(columns - 1, static_cast<uint64_t>(matrix.ld), rows);
    if (batch == 1) return add(matrix.address, one, kind == Kind::kOut);
    if (matrix.stride < 0) return refuse("a stride is %lld", static_cast<long long>(matrix.stride));
    uint64_t apart, all;
    if (__builtin_mul_overflow(static_cast<uint64_t>(matrix.stride), batch - 1, &apart) ||
        __builtin_mul_overflow(apart, element_bytes(), &apart) || __builtin_add_overflow(apart, one, &all) ||
        all > kMostBytes)
      return refuse("a batch of matrices is larger than any memory");
    add(matrix.address, all, kind == Kind::kOut);
  }
  void add_array(const Matrix& matrix, uint64_t rows, uint64_t columns, Kind kind, uint64_t batch) {
    if (!check_ld(matrix, rows)) return;
    if (rows == 0 || columns == 0 || batch == 0) return;
    if (batch > kMostBytes / sizeof(uint64_t)) return refuse("a batch of %llu", static_cast<unsigned long long>(batch));
    type_ = matrix.type;
    const uint64_t one = bytes(columns - 1, static_cast<uint64_t>(matrix.ld), rows);
    if (problem_) return;
    demand_.operands.push_back({matrix.address, one, kind == Kind::kOut, batch});
    demand_.bytes += std::min(kMostBytes, one) * std::min<uint64_t>(batch, UINT16_MAX) + batch * sizeof(uint64_t);
  }

  // What it costs: each pair is a multiplication and an addition. Complex ones are four.
  void work(double pairs) {
    const bool complex = type_ == DataType::kC32 || type_ == DataType::kC64;
    demand_.flops += pairs * (complex ? 8 : 2);
  }
  void elements(uint64_t count) {
    demand_.blocks = std::max<uint64_t>(1, (count - (count > 0)) / Demand::kThreads + 1);
  }
  void tiles(uint64_t rows, uint64_t columns, uint64_t batch = 1) {
    const uint64_t down = rows / kTile + 1, across = columns / kTile + 1;
    const double blocks = real(down, across, std::max<uint64_t>(batch, 1));
    demand_.blocks = static_cast<uint64_t>(std::min(blocks, 2147483647.0));
  }

  Result<Demand> finish() {
    if (!problem_ && next_ != function_.kinds.size())
      problem(ErrorCode::kInternal, "its shape reads %u of %zu arguments", next_, function_.kinds.size());
    if (problem_) return tl::unexpected(std::move(*problem_));
    return std::move(demand_);
  }

 private:
  template <class... Values>
  void refuse(const char* format, Values... values) {
    problem(ErrorCode::kInvalidArgument, format, values...);
  }
  template <class... Values>
  void not_supported(const char* format, Values... values) {
    problem(ErrorCode::kNotSupported, format, values...);
  }
  template <class... Values>
  void problem(ErrorCode code, const char* format, Values... values) {
    if (problem_) return;
    problem_ = Error{code, std::string(function_.name) + ": " + stringf(format, values...)};
  }

  // A table whose line and shape disagree shows at the function's first use.
  uint64_t take(Kind kind) {
    if (next_ == function_.kinds.size() || function_.kinds[next_] != kind)
      problem(ErrorCode::kInternal, "argument %u is not what its shape says", next_);
    if (problem_) return 0;
    const uint64_t value = arguments_[at_];
    at_ += words_of(function_.kinds[next_++]);
    return value;
  }
  int64_t take_dim() {
    const auto value = static_cast<int64_t>(take(Kind::kDim));
    if (!setting_.wide && value != static_cast<int32_t>(value)) refuse("a size of more than 32 bits");
    return problem_ ? 0 : value;
  }
  uint64_t take_below(Kind kind, uint64_t limit, const char* what) {
    const uint64_t value = take(kind);
    if (value >= limit) refuse("%s is %lld", what, static_cast<long long>(value));
    return value;
  }
  uint32_t element_bytes() const { return bytes_of(type_); }
  bool check_ld(const Matrix& matrix, uint64_t rows) {
    if (matrix.ld >= 1 && static_cast<uint64_t>(matrix.ld) >= rows) return true;
    refuse("a matrix of %llu rows has a leading dimension of %lld", static_cast<unsigned long long>(rows),
           static_cast<long long>(matrix.ld));
    return false;
  }
  // From the first byte of the first of `last + 1` runs of `run` elements, `distance` elements apart, to behind the
  // last.
  uint64_t bytes(std::optional<uint64_t> last, uint64_t distance, uint64_t run) {
    if (!last) return 0;
    uint64_t elements, total;
    if (!__builtin_mul_overflow(*last, distance, &elements) && !__builtin_add_overflow(elements, run, &elements) &&
        !__builtin_mul_overflow(elements, element_bytes(), &total) && total <= kMostBytes)
      return total;
    refuse("an operand is larger than any memory");
    return 0;
  }
  void add(uint64_t address, uint64_t bytes, bool written) {
    if (problem_ || bytes == 0) return;
    demand_.operands.push_back({address, bytes, written, 0});
    demand_.bytes += bytes;
  }

  const Function& function_;
  const Setting& setting_;
  std::span<const uint64_t> arguments_;
  DataType type_;  // of the elements at hand
  uint32_t at_ = 0, next_ = 0;
  Demand demand_;
  std::optional<Error> problem_;
};

struct Combination {
  DataType ab, c, compute;
};

// cublasGemmEx's table of types, as far as this serves it; A and B are of one type.
void Reader::check_types(DataType a, DataType b, DataType c, DataType compute) {
  using enum DataType;
  static constexpr Combination kPossible[] = {
      {kF16, kF16, kF16},  {kI8, kI32, kI32},  {kBf16, kBf16, kF32}, {kF16, kF16, kF32}, {kI8, kF32, kF32},
      {kBf16, kF32, kF32}, {kF16, kF32, kF32}, {kF32, kF32, kF32},   {kF64, kF64, kF64}, {kC32, kC32, kF32},
      {kC64, kC64, kF64},  {kC32, kC32, kC32}, {kC64, kC64, kC64}};
  const bool possible = a == b && std::any_of(std::begin(kPossible), std::end(kPossible), [&](const Combination& each) {
                          return each.ab == a && each.c == c && each.compute == compute;
                        });
  if (!possible)
    not_supported("matrices of types %d, %d and %d are not multiplied in type %d", static_cast<int>(a),
                  static_cast<int>(b), static_cast<int>(c), static_cast<int>(compute));
}

void vectors(Reader& in, Shape shape) {
  const uint64_t n = in.length();
  const bool has_alpha = shape == Shape::kAxpy || shape == Shape::kScal;
  if (has_alpha) in.scalar();
  const bool one = shape == Shape::kIndex || shape == Shape::kReduce || shape == Shape::kScal;
  const bool changes_both = shape == Shape::kSwap || shape == Shape::kRot || shape == Shape::kRotm;
  in.vector(n, changes_both || shape == Shape::kScal ? Kind::kOut : Kind::kIn);
  if (!one) in.vector(n, shape == Shape::kDot ? Kind::kIn : Kind::kOut);
  if (shape == Shape::kRot) in.scalar(), in.scalar();
  if (shape == Shape::kRotm) in.parameters();
  if (shape == Shape::kIndex || shape == Shape::kReduce || shape == Shape::kDot) in.answer();
  in.work(real(n));
  in.elements(n);
}

void rotations(Reader& in, Shape shape) {
  for (int i = 0; i < 3; ++i) in.answer();
  if (shape == Shape::kRotmg) in.input();
  in.answer(shape == Shape::kRotmg ? 5 : 1);
}

// y = alpha op(A) x + beta y.
void general_vector(Reader& in, bool banded) {
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

void rank_1(Reader& in) {
  const uint64_t m = in.size(), n = in.size();
  in.scalar();
  in.vector_of_level_2(m, Kind::kIn);
  in.vector_of_level_2(n, Kind::kIn);
  in.matrix(m, n, Kind::kOut);
  in.work(real(m, n));
  in.tiles(m, n);
}

// y = alpha A x + beta y with a symmetric A: whole, a band, packed.
void symmetric_vector(Reader& in, Shape shape) {
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
void symmetric_rank(Reader& in, Shape shape) {
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

// x = op(A) x, or its inverse.
void triangular_vector(Reader& in, Shape shape) {
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

struct Product {
  bool a_transposed = false, b_transposed = false;
  uint64_t m = 0, n = 0, k = 0;

  explicit Product(Reader& in)
      : a_transposed(in.transposed()), b_transposed(in.transposed()), m(in.size()), n(in.size()), k(in.size()) {}
  uint64_t a_rows() const { return a_transposed ? k : m; }
  uint64_t a_columns() const { return a_transposed ? m : k; }
  uint64_t b_rows() const { return b_transposed ? n : k; }
  uint64_t b_columns() const { return b_transposed ? k : n; }
};

// C = alpha op(A) op(B) + beta C: one, or many a stride apart, or many by arrays of addresses.
enum class Batch { kOne, kStrided, kArrays };
void product(Reader& in, Batch batch, bool typed, bool computes) {
  const Product of(in);
  const auto matrix = [&](Kind kind) {
    Matrix read = typed ? in.typed_matrix_at(kind) : in.matrix_at(kind);
    if (batch == Batch::kStrided) in.strided(read);
    return read;
  };
  in.scalar();
  const Matrix a = matrix(Kind::kIn), b = matrix(Kind::kIn);
  in.scalar();
  const Matrix c = matrix(Kind::kOut);
  const uint64_t count = batch == Batch::kOne ? 1 : in.size();
  if (computes) in.compute(a, b, c);
  if (typed && !computes) in.check_types(a.type, b.type, c.type, DataType::kF32);
  const auto add = [&](const Matrix& which, uint64_t rows, uint64_t columns, Kind kind) {
    if (batch == Batch::kArrays) return in.add_array(which, rows, columns, kind, count);
    in.add(which, rows, columns, kind, count);
  };
  add(a, of.a_rows(), of.a_columns(), Kind::kIn);
  add(b, of.b_rows(), of.b_columns(), Kind::kIn);
  add(c, of.m, of.n, Kind::kOut);
  in.work(real(of.m, of.n, of.k) * static_cast<double>(count));
  in.tiles(of.m, of.n, count);
}

// C = alpha A B + beta C, A symmetric.
void symmetric_product(Reader& in) {
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

// C = alpha op(A) op(A)' + beta C; with two matrices, their product and maybe its transpose.
void symmetric_update(Reader& in, Shape shape) {
  in.fill();
  const bool transposed = in.transposed();
  const uint64_t n = in.size(), k = in.size(), rows = transposed ? k : n, columns = transposed ? n : k;
  in.scalar();
  in.matrix(rows, columns, Kind::kIn);
  if (shape != Shape::kSyrk) in.matrix(rows, columns, Kind::kIn);
  in.scalar();
  in.matrix(n, n, Kind::kOut);
  in.work(real(n, n, k) * (shape == Shape::kSyr2k ? 1 : 0.5));
  in.tiles(n, n);
}

// C = alpha op(A) B with a triangular A (trmm); B becomes the solution of op(A) X = alpha B (trsm).
void triangular_product(Reader& in, Shape shape) {
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

// C = alpha op(A) + beta op(B).
void sum(Reader& in) {
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
void scaled(Reader& in) {
  const bool left = in.left();
  const uint64_t m = in.size(), n = in.size();
  in.matrix(m, n, Kind::kIn);
  in.vector(left ? m : n, Kind::kIn);
  in.matrix(m, n, Kind::kOut);
  in.work(real(m, n));
  in.tiles(m, n);
}

void read(Reader& in, Shape shape) {
  switch (shape) {
    case Shape::kIndex:
    case Shape::kReduce:
    case Shape::kDot:
    case Shape::kAxpy:
    case Shape::kScal:
    case Shape::kCopy:
    case Shape::kSwap:
    case Shape::kRot:
    case Shape::kRotm:
      return vectors(in, shape);
    case Shape::kRotg:
    case Shape::kRotmg:
      return rotations(in, shape);
    case Shape::kGemv:
    case Shape::kGbmv:
      return general_vector(in, shape == Shape::kGbmv);
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
    case Shape::kTriangular:
    case Shape::kTriangularBand:
    case Shape::kTriangularPacked:
      return triangular_vector(in, shape);
    case Shape::kGemm:
      return product(in, Batch::kOne, false, false);
    case Shape::kGemmStrided:
      return product(in, Batch::kStrided, false, false);
    case Shape::kGemmBatched:
      return product(in, Batch::kArrays, false, false);
    case Shape::kSgemmEx:
      return product(in, Batch::kOne, true, false);
    case Shape::kGemmEx:
      return product(in, Batch::kOne, true, true);
    case Shape::kGemmStridedEx:
      return product(in, Batch::kStrided, true, true);
    case Shape::kGemmBatchedEx:
      return product(in, Batch::kArrays, true, true);
    case Shape::kSymm:
      return symmetric_product(in);
    case Shape::kSyrk:
    case Shape::kSyr2k:
    case Shape::kSyrkx:
      return symmetric_update(in, shape);
    case Shape::kTrmm:
    case Shape::kTrsm:
      return triangular_product(in, shape);
    case Shape::kGeam:
      return sum(in);
    case Shape::kDgmm:
      return scaled(in);
  }
}

}  // namespace

Result<Demand> demand(const Call& call) {
  if (call.function >= functions().size())
    return fail(ErrorCode::kNotFound, "cuBLAS function %u does not exist, there are %zu", call.function,
                functions().size());
  const Function& function = functions()[call.function];
  if (call.words.size() != Setting::kWords + function.argument_words())
    return fail(ErrorCode::kInvalidArgument, "%s: %zu words, it takes %u", function.name, call.words.size(),
                Setting::kWords + function.argument_words());
  const auto setting = Setting::unpack(call.words);
  if (!setting) return tl::unexpected(setting.error());
  if (setting->wide && !function.twin)
    return fail(ErrorCode::kInvalidArgument, "%s has no form with sizes of 64 bits", function.name);
  Reader reader(function, *setting, call.words.subspan(Setting::kWords));
  read(reader, function.shape);
  return reader.finish();
}

}  // namespace heddle::library::cublas
