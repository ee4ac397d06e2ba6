// What cuBLAS's functions of level 1 describe whose types are arguments (cublasAxpyEx and its kin). What NVIDIA's
// tables of types have in common: vectors are of one type, half precision and bfloat16 are calculated in single
// precision, everything else in its own, and values are of the vectors' type or of what is calculated in.

#include <initializer_list>

#include "library/operand_reader.h"

namespace heddle::library::cublas {
namespace {

bool is_half(DataType type) {
  return type == DataType::kF16 || type == DataType::kBf16;
}

bool is_calculated(DataType type) {
  return type == DataType::kF32 || type == DataType::kF64 || is_complex(type);
}

struct Types {
  OperandReader& in;
  DataType vector{};

  // Of vectors, which are all of the first one's.
  void vectors(std::initializer_list<DataType> types) {
    vector = *types.begin();
    for (const DataType type : types) {
      if (type != vector)
        in.not_supported("vectors of types %d and %d are not supported together", static_cast<int>(vector),
                         static_cast<int>(type));
    }
    if (!is_half(vector) && !is_calculated(vector))
      in.not_supported("vectors of type %d are not supported", static_cast<int>(vector));
  }
  void value(DataType type) {
    const bool fits = type == vector || type == calculated() || type == real_of(vector);
    if (!fits)
      in.not_supported("a value of type %d is not supported with vectors of type %d", static_cast<int>(type),
                       static_cast<int>(vector));
  }
  // Lengths and sums of magnitudes are calculated in the real type.
  void execution(bool real = false) {
    const DataType type = in.type();
    if (type != (real ? real_of(calculated()) : calculated()))
      in.not_supported("vectors of type %d are not calculated in type %d", static_cast<int>(vector),
                       static_cast<int>(type));
  }
  DataType calculated() const { return is_half(vector) ? DataType::kF32 : vector; }
};

void one_vector(OperandReader& in, Shape shape) {
  Types types{in};
  const uint64_t n = in.length();
  DataType value{};
  if (shape == Shape::kScalEx) {
    in.scalar();
    value = in.type();
  }
  const Kind kind = shape == Shape::kScalEx ? Kind::kOut : Kind::kIn;
  const Vector x = in.typed_matrix_at(kind);
  types.vectors({x.type});
  in.add_vector(x, n, kind);
  if (shape == Shape::kScalEx) types.value(value);
  if (shape != Shape::kScalEx) in.answer();
  if (shape == Shape::kReduceEx) types.value(in.type());
  if (shape != Shape::kIndexEx) types.execution(shape == Shape::kReduceEx);
  in.work(real(n));
  in.elements(n);
}

void two_vectors(OperandReader& in, Shape shape) {
  Types types{in};
  const uint64_t n = in.length();
  DataType value{};
  if (shape == Shape::kAxpyEx) {
    in.scalar();
    value = in.type();
  }
  const bool changes_both = shape == Shape::kSwapEx || shape == Shape::kRotEx || shape == Shape::kRotmEx;
  const Kind first = changes_both ? Kind::kOut : Kind::kIn;
  const Kind second = shape == Shape::kDotEx ? Kind::kIn : Kind::kOut;
  const Vector x = in.typed_matrix_at(first), y = in.typed_matrix_at(second);
  types.vectors({x.type, y.type});
  in.add_vector(x, n, first);
  in.add_vector(y, n, second);
  if (shape == Shape::kAxpyEx) types.value(value);
  if (shape == Shape::kDotEx) in.answer();
  if (shape == Shape::kRotEx) in.scalar(), in.scalar();
  if (shape == Shape::kRotmEx) in.parameters();
  if (shape == Shape::kDotEx || shape == Shape::kRotEx || shape == Shape::kRotmEx) types.value(in.type());
  if (shape == Shape::kRotmEx && is_complex(x.type)) in.not_supported("its vectors are real");
  if (shape != Shape::kCopyEx && shape != Shape::kSwapEx) types.execution();
  in.work(real(n));
  in.elements(n);
}

void rotation(OperandReader& in) {
  Types types{in};
  in.answer(), in.answer();
  types.vectors({in.type()});
  in.answer(), in.answer();
  types.value(in.type());
  types.execution();
}

void modified_rotation(OperandReader& in) {
  Types types{in};
  DataType all[5];
  for (int i = 0; i < 3; ++i) {
    in.answer();
    all[i] = in.type();
  }
  in.input();
  all[3] = in.type();
  in.answer(5);
  all[4] = in.type();
  types.vectors({all[0], all[1], all[2], all[3], all[4]});
  if (is_complex(all[0])) in.not_supported("its values are real");
  types.execution();
}

}  // namespace

void read_typed_vectors(OperandReader& in, Shape shape) {
  switch (shape) {
    case Shape::kIndexEx:
    case Shape::kReduceEx:
    case Shape::kScalEx:
      return one_vector(in, shape);
    case Shape::kRotgEx:
      return rotation(in);
    case Shape::kRotmgEx:
      return modified_rotation(in);
    default:
      return two_vectors(in, shape);
  }
}

}  // namespace heddle::library::cublas
