#include "library/argument_reader.h"

#include <algorithm>

namespace heddle::library::cublas {

uint64_t ArgumentReader::take(Kind kind) {
  if (next() != kind) problem(ErrorCode::kInternal, "argument %u is not what its shape says", next_);
  if (problem_) return 0;
  const uint64_t value = arguments_[at_];
  at_ += words_of(kind);
  ++next_;
  return value;
}

uint64_t ArgumentReader::take_below(Kind kind, uint64_t limit, const char* what) {
  const uint64_t value = take(kind);
  if (value >= limit) refuse("%s is %lld", what, static_cast<long long>(value));
  return value;
}

int64_t ArgumentReader::dim() {
  const auto value = static_cast<int64_t>(take(Kind::kDim));
  if (!setting_.wide && value != static_cast<int32_t>(value)) refuse("a size of more than 32 bits");
  return problem_ ? 0 : value;
}

uint64_t ArgumentReader::size() {
  const int64_t value = dim();
  if (value < 0) refuse("a size is %lld", static_cast<long long>(value));
  return value < 0 ? 0 : static_cast<uint64_t>(value);
}

uint64_t ArgumentReader::length() {
  return static_cast<uint64_t>(std::max<int64_t>(dim(), 0));
}

DataType ArgumentReader::type() {
  const auto type = static_cast<DataType>(static_cast<int>(take(Kind::kType)));
  if (bytes_of(type) == 0) not_supported("type %d is not supported", static_cast<int>(type));
  return type;
}

std::optional<Error> ArgumentReader::finish() {
  if (next_ != function_.kinds.size())
    problem(ErrorCode::kInternal, "its shape reads %u of %zu arguments", next_, function_.kinds.size());
  return std::move(problem_);
}

}  // namespace heddle::library::cublas
