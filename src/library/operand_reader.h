#pragma once

#include "library/argument_reader.h"

// What arguments of cuBLAS's functions describe: which memory, how much of it, how much work. After NVIDIA's
// documentation of each function: matrices are stored by columns, `ld` elements from one to the next.
namespace heddle::library::cublas {

inline double real(uint64_t a, uint64_t b = 1, uint64_t c = 1) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

struct Matrix {
  uint64_t address = 0;
  int64_t ld = 0, stride = 0;
  DataType type = DataType::kF32;
};
// As a Matrix: `ld` elements from one to the next, forwards or backwards.
using Vector = Matrix;

// How many operands an argument stands for: one, several that are a stride apart, or several by an array of addresses.
struct Batch {
  enum class By : uint8_t { kOne, kStrides, kArrays };
  By by = By::kOne;
  uint64_t count = 1;
};

// Reads operands as they stand among the arguments, and collects what they ask for.
class OperandReader : public ArgumentReader {
 public:
  OperandReader(const Function& function, const Setting& setting, std::span<const uint64_t> arguments)
      : ArgumentReader(function, setting, arguments), type_(operand_type(function.element)) {}

  // Values whose place the pointer mode says.
  void scalar();
  void parameters();
  // Five of rotmg's.
  void answer(uint64_t count = 1);
  void input();
  // One on the host, which is nobody's operand.
  void info() { (void)take(Kind::kInfo); }

  // Each an operand of its own.
  void vector(uint64_t count, Kind kind);
  // Level 2 knows no vector that stands still.
  void vector_of_level_2(uint64_t count, Kind kind);
  void matrix(uint64_t rows, uint64_t columns, Kind kind) { add(matrix_at(kind), rows, columns, kind); }
  void packed(uint64_t n, Kind kind);

  // Pieces of the functions whose arguments have to be known whole first.
  Matrix matrix_at(Kind kind);
  Matrix typed_matrix_at(Kind kind);
  void strided(Matrix& matrix) { matrix.stride = static_cast<int64_t>(take(Kind::kStride)); }
  void add(const Matrix& matrix, uint64_t rows, uint64_t columns, Kind kind, const Batch& batch = {});
  void add_vector(const Vector& vector, uint64_t count, Kind kind, const Batch& batch = {});
  // `elements` without gaps, behind each address of an array.
  void add_dense(uint64_t address, uint64_t elements, Kind kind, const Batch& batch);
  // Integers: pivots and what went wrong. `optional`: null is none.
  void add_integers(uint64_t address, uint64_t count, Kind kind, bool optional);

  // What it costs: each pair is a multiplication and an addition. Complex ones are four.
  void work(double pairs);
  void elements(uint64_t count);
  void tiles(uint64_t rows, uint64_t columns, uint64_t batch = 1);

  // Of the elements at hand.
  DataType element() const { return type_; }
  void set_element(DataType type) { type_ = type; }

  Result<Demand> demand();

 private:
  uint64_t element_bytes() const { return bytes_of(type_); }
  bool check_ld(const Matrix& matrix, uint64_t rows);
  uint64_t bytes(uint64_t last, uint64_t distance, uint64_t run);
  void add_bytes(uint64_t address, uint64_t bytes, bool written);
  // `one` bytes, as often as the batch says.
  void add_batch(const Matrix& place, uint64_t one, bool written, const Batch& batch);

  DataType type_;
  Demand demand_;
};

// The shapes, by what they describe.
void read_vectors(OperandReader& in, Shape shape);         // level 1
void read_typed_vectors(OperandReader& in, Shape shape);   // level 1, types by argument
void read_matrix_vector(OperandReader& in, Shape shape);   // level 2
void read_matrices(OperandReader& in, Shape shape);        // level 3
void read_factorizations(OperandReader& in, Shape shape);  // of LAPACK

}  // namespace heddle::library::cublas
