#pragma once

#include <optional>

#include "library/cublas.h"

namespace heddle::library::cublas {

// Reads a call's arguments in order, each as the kind that its function's shape expects there. The first that makes no
// sense ends it: what is read afterwards is zero. A table whose line and shape disagree shows at the function's first
// use.
class ArgumentReader {
 public:
  ArgumentReader(const Function& function, const Setting& setting, std::span<const uint64_t> arguments)
      : function_(function), setting_(setting), arguments_(arguments) {}

  uint64_t take(Kind kind);
  // What comes next; kNothing behind the last argument.
  static constexpr Kind kNothing = static_cast<Kind>(255);
  Kind next() const { return next_ < function_.kinds.size() ? function_.kinds[next_] : kNothing; }
  // Its index, and the bytes of the value behind it (value_bytes()).
  uint32_t index() const { return next_; }
  uint32_t next_value_bytes() const { return value_bytes(function_, arguments_, next_, setting_.wide); }

  // cublasOperation_t: 0 as it is, 1 transposed, 2 conjugated, too.
  uint32_t operation() { return static_cast<uint32_t>(take_below(Kind::kOp, 3, "transpose")); }
  bool transposed() { return operation() != 0; }
  void fill() { (void)take_below(Kind::kFill, 2, "uplo"); }
  bool left() { return take_below(Kind::kSide, 2, "side") == 0; }
  void diagonal() { (void)take_below(Kind::kDiag, 2, "diag"); }
  int64_t dim();
  // A size that may not be negative.
  uint64_t size();
  // One of level 1, where less than nothing is nothing.
  uint64_t length();
  // One that is served.
  DataType type();

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
  // What ended it, or that not all arguments were read.
  std::optional<Error> finish();
  bool ended() const { return problem_.has_value(); }

  const Function& function() const { return function_; }
  const Setting& setting() const { return setting_; }

 private:
  uint64_t take_below(Kind kind, uint64_t limit, const char* what);

  const Function& function_;
  const Setting& setting_;
  std::span<const uint64_t> arguments_;
  uint32_t at_ = 0, next_ = 0;
  std::optional<Error> problem_;
};

}  // namespace heddle::library::cublas
