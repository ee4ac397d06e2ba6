#include "library/operand_reader.h"

#include <algorithm>

namespace heddle::library::cublas {
namespace {

constexpr uint64_t kMostBytes = 1ull << 48;  // beyond any memory
constexpr uint64_t kTile = 64;               // a block of a matrix product: that many rows and columns of the result

}  // namespace

void OperandReader::scalar() {
  const uint64_t bytes = next_value_bytes();
  const Kind kind = is_scalar(next()) ? next() : Kind::kScalar;
  const uint64_t address = take(kind);
  if (setting().scalars_on_device) add_bytes(address, bytes, false);
}

void OperandReader::parameters() {
  const uint64_t bytes = next_value_bytes();
  const Kind kind = is_parameters(next()) ? next() : Kind::kParameters;
  const uint64_t address = take(kind);
  if (setting().scalars_on_device) add_bytes(address, 5 * bytes, false);
}

void OperandReader::answer(uint64_t count) {
  const uint64_t bytes = next_value_bytes();
  const Kind kind = is_answer(next()) ? next() : Kind::kAnswer;
  add_bytes(take(kind), count * bytes, true);
}

void OperandReader::input() {
  const uint64_t bytes = next_value_bytes();
  add_bytes(take(Kind::kIn), bytes, false);
}

void OperandReader::vector(uint64_t count, Kind kind) {
  add_vector(matrix_at(kind), count, kind);
}

void OperandReader::vector_of_level_2(uint64_t count, Kind kind) {
  const Vector read = matrix_at(kind);
  if (read.ld == 0) refuse("the distance between a vector's elements is 0");
  add_vector(read, count, kind);
}

void OperandReader::packed(uint64_t n, Kind kind) {
  const uint64_t address = take(kind);
  uint64_t elements;
  if (n > UINT32_MAX || __builtin_mul_overflow(n, n + 1, &elements)) return refuse("a matrix is too large");
  if (n > 0) add_bytes(address, bytes(elements / 2 - 1, 1, 1), kind == Kind::kOut);
}

Matrix OperandReader::matrix_at(Kind kind) {
  Matrix read;
  read.type = type_;
  read.address = take(kind);
  read.ld = dim();
  return read;
}

Matrix OperandReader::typed_matrix_at(Kind kind) {
  Matrix read;
  read.address = take(kind);
  read.type = type();
  read.ld = dim();
  return read;
}

void OperandReader::add(const Matrix& matrix, uint64_t rows, uint64_t columns, Kind kind, const Batch& batch) {
  if (!check_ld(matrix, rows)) return;
  if (rows == 0 || columns == 0 || batch.count == 0) return;
  type_ = matrix.type;
  add_batch(matrix, bytes(columns - 1, static_cast<uint64_t>(matrix.ld), rows), kind == Kind::kOut, batch);
}

void OperandReader::add_vector(const Vector& vector, uint64_t count, Kind kind, const Batch& batch) {
  if (count == 0 || batch.count == 0) return;
  type_ = vector.type;
  const uint64_t distance = vector.ld < 0 ? -static_cast<uint64_t>(vector.ld) : static_cast<uint64_t>(vector.ld);
  add_batch(vector, bytes(count - 1, distance, 1), kind == Kind::kOut, batch);
}

void OperandReader::add_dense(uint64_t address, uint64_t elements, Kind kind, const Batch& batch) {
  if (elements == 0 || batch.count == 0) return;
  add_batch({address, 1, 0, type_}, bytes(elements - 1, 1, 1), kind == Kind::kOut, batch);
}

void OperandReader::add_integers(uint64_t address, uint64_t count, Kind kind, bool optional) {
  if (address == 0 && optional) return;
  add_bytes(address, count * sizeof(int32_t), kind == Kind::kOut);
}

void OperandReader::work(double pairs) {
  demand_.flops += pairs * (is_complex(type_) ? 8 : 2);
}

void OperandReader::elements(uint64_t count) {
  demand_.blocks = std::max<uint64_t>(1, (count - (count > 0)) / Demand::kThreads + 1);
}

void OperandReader::tiles(uint64_t rows, uint64_t columns, uint64_t batch) {
  const uint64_t down = rows / kTile + 1, across = columns / kTile + 1;
  const double blocks = real(down, across, std::max<uint64_t>(batch, 1));
  demand_.blocks = static_cast<uint64_t>(std::min(blocks, 2147483647.0));
}

Result<Demand> OperandReader::demand() {
  if (auto problem = finish()) return tl::unexpected(std::move(*problem));
  return std::move(demand_);
}

bool OperandReader::check_ld(const Matrix& matrix, uint64_t rows) {
  if (matrix.ld >= 1 && static_cast<uint64_t>(matrix.ld) >= rows) return true;
  refuse("a matrix of %llu rows has a leading dimension of %lld", static_cast<unsigned long long>(rows),
         static_cast<long long>(matrix.ld));
  return false;
}

// From the first byte of the first of `last + 1` runs of `run` elements, `distance` elements apart, to behind the last.
uint64_t OperandReader::bytes(uint64_t last, uint64_t distance, uint64_t run) {
  uint64_t elements, total;
  if (!__builtin_mul_overflow(last, distance, &elements) && !__builtin_add_overflow(elements, run, &elements) &&
      !__builtin_mul_overflow(elements, element_bytes(), &total) && total <= kMostBytes)
    return total;
  refuse("an operand is larger than any memory");
  return 0;
}

void OperandReader::add_bytes(uint64_t address, uint64_t bytes, bool written) {
  if (ended() || bytes == 0) return;
  demand_.operands.push_back({address, bytes, written, 0});
  demand_.bytes += bytes;
}

void OperandReader::add_batch(const Matrix& place, uint64_t one, bool written, const Batch& batch) {
  if (batch.by == Batch::By::kArrays) {
    if (batch.count > kMostBytes / sizeof(uint64_t))
      return refuse("a batch of %llu", static_cast<unsigned long long>(batch.count));
    if (ended()) return;
    demand_.operands.push_back({place.address, one, written, batch.count});
    demand_.bytes +=
        std::min(kMostBytes, one) * std::min<uint64_t>(batch.count, UINT16_MAX) + batch.count * sizeof(uint64_t);
    return;
  }
  if (batch.count == 1) return add_bytes(place.address, one, written);
  if (place.stride < 0) return refuse("a stride is %lld", static_cast<long long>(place.stride));
  uint64_t apart, all;
  if (__builtin_mul_overflow(static_cast<uint64_t>(place.stride), batch.count - 1, &apart) ||
      __builtin_mul_overflow(apart, element_bytes(), &apart) || __builtin_add_overflow(apart, one, &all) ||
      all > kMostBytes)
    return refuse("a batch is larger than any memory");
  add_bytes(place.address, all, written);
}

}  // namespace heddle::library::cublas
