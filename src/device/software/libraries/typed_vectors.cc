#include "device/software/libraries/typed_vectors.h"

#include <cmath>
#include <complex>
#include <cstring>

#include "library/number_format.h"

namespace heddle::software {
namespace {

using library::cublas::DataType;
using library::cublas::Number;
using library::cublas::Shape;
using Complex = std::complex<double>;

template <class Value>
Value read(const void* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class Value>
void put(void* to, Value value) {
  std::memcpy(to, &value, sizeof value);
}

Complex load(DataType type, const void* from) {
  switch (type) {
    case DataType::kF16:
      return library::float_of_half(read<uint16_t>(from));
    case DataType::kBf16:
      return library::float_of_bfloat(read<uint16_t>(from));
    case DataType::kF64:
      return read<double>(from);
    case DataType::kC32:
      return read<std::complex<float>>(from);
    case DataType::kC64:
      return read<Complex>(from);
    default:
      return read<float>(from);
  }
}

void store_value(DataType type, void* to, Complex value) {
  const auto single = static_cast<float>(value.real());
  switch (type) {
    case DataType::kF16:
      return put(to, library::half_of(single));
    case DataType::kBf16:
      return put(to, library::bfloat_of(single));
    case DataType::kF64:
      return put(to, value.real());
    case DataType::kC32:
      return put(to, std::complex<float>(value));
    case DataType::kC64:
      return put(to, value);
    default:
      return put(to, single);
  }
}

// Steps backwards begin at its end.
class TypedVector {
 public:
  TypedVector(DataType type, void* data, int64_t step, int64_t count)
      : data_(static_cast<char*>(data)), type_(type), step_(step), first_(step < 0 ? (1 - count) * step : 0) {}
  // Behind three arguments: address, type, step.
  TypedVector(const CallArguments& arguments, size_t first, int64_t count)
      : TypedVector(arguments.type(first + 1), arguments.at(first), arguments.number(first + 2), count) {}
  Complex at(int64_t i) const { return load(type_, place(i)); }
  void set(int64_t i, Complex value) const { store_value(type_, place(i), value); }
  int64_t step() const { return step_; }

 private:
  char* place(int64_t i) const { return data_ + (first_ + i * step_) * int64_t{bytes_of(type_)}; }
  char* data_;
  DataType type_;
  int64_t step_, first_;
};

// What level 1 means by the size of a complex number.
double size(Complex value) {
  return std::fabs(value.real()) + std::fabs(value.imag());
}

// Counted from 1; 0 of no elements.
int64_t find_extreme(const TypedVector& x, int64_t count, bool largest) {
  if (count < 1 || x.step() < 1) return 0;
  int64_t found = 0;
  for (int64_t i = 1; i < count; ++i) {
    const double here = size(x.at(i)), best = size(x.at(found));
    if (largest ? here > best : here < best) found = i;
  }
  return found + 1;
}

double sum_of_sizes(const TypedVector& x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count && x.step() > 0; ++i) sum += size(x.at(i));
  return sum;
}

// Scaled, so that squares neither overflow nor vanish.
double norm(const TypedVector& x, int64_t count) {
  double largest = 0, sum = 0;
  for (int64_t i = 0; i < count && x.step() > 0; ++i) largest = std::fmax(largest, std::abs(x.at(i)));
  if (largest == 0 || std::isinf(largest)) return largest;
  for (int64_t i = 0; i < count; ++i) sum += std::norm(x.at(i) / largest);
  return largest * std::sqrt(sum);
}

Complex dot(const TypedVector& x, const TypedVector& y, int64_t count, bool conjugates) {
  Complex sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += (conjugates ? std::conj(x.at(i)) : x.at(i)) * y.at(i);
  return sum;
}

// x and y become h11 x + h12 y and h21 x + h22 y.
void transform(const TypedVector& x, const TypedVector& y, int64_t count, const Complex (&h)[2][2]) {
  for (int64_t i = 0; i < count; ++i) {
    const Complex a = x.at(i), b = y.at(i);
    x.set(i, h[0][0] * a + h[0][1] * b);
    y.set(i, h[1][0] * a + h[1][1] * b);
  }
}

// rotm's parameters: a flag, and as much of the matrix, by columns, as the flag does not say.
void transform_modified(const TypedVector& x, const TypedVector& y, int64_t count, const void* parameters,
                        DataType type) {
  const auto at = [&](size_t i) { return load(type, static_cast<const char*>(parameters) + i * bytes_of(type)); };
  const double flag = at(0).real();
  if (flag == -2) return;
  const bool diagonal = flag == 0, corners = flag == 1;
  const Complex h[2][2] = {{diagonal ? 1 : at(1), corners ? 1 : at(3)}, {corners ? -1 : at(2), diagonal ? 1 : at(4)}};
  transform(x, y, count, h);
}

void run_two(Shape shape, const CallArguments& in) {
  const int64_t count = in.wide(0);
  const TypedVector x(in, 1, count), y(in, 4, count);
  if (shape == Shape::kCopyEx) {
    for (int64_t i = 0; i < count; ++i) y.set(i, x.at(i));
  } else if (shape == Shape::kSwapEx) {
    transform(x, y, count, {{0, 1}, {1, 0}});
  } else if (shape == Shape::kRotEx) {
    const DataType type = in.type(9);
    const Complex c = load(real_of(type), in.at(7)), s = load(type, in.at(8));
    transform(x, y, count, {{c, s}, {-std::conj(s), c}});
  } else {
    transform_modified(x, y, count, in.at(7), in.type(8));
  }
}

// a, b, their type, c, s, their type
std::optional<std::string> make_rotation(const CallArguments& in, const Openblas& blas) {
  if (is_complex(in.type(2))) return "cublasRotgEx of complex numbers is not supported on software devices";
  double a = load(in.type(2), in.at(0)).real(), b = load(in.type(2), in.at(1)).real(), c = 0, s = 0;
  reinterpret_cast<void (*)(double*, double*, double*, double*)>(blas.function("drotg_"))(&a, &b, &c, &s);
  store_value(in.type(2), in.at(0), a);
  store_value(in.type(2), in.at(1), b);
  store_value(in.type(5), in.at(3), c);
  store_value(in.type(5), in.at(4), s);
  return std::nullopt;
}

// d1, d2, x1, y1, parameters, each before its type
void make_modified_rotation(const CallArguments& in, const Openblas& blas) {
  double values[4], parameters[5] = {};
  for (size_t i = 0; i < 4; ++i) values[i] = load(in.type(2 * i + 1), in.at(2 * i)).real();
  using Function = void (*)(double*, double*, double*, const double*, double*);
  reinterpret_cast<Function>(blas.function("drotmg_"))(&values[0], &values[1], &values[2], &values[3], parameters);
  for (size_t i = 0; i < 3; ++i) store_value(in.type(2 * i + 1), in.at(2 * i), values[i]);
  const DataType type = in.type(9);
  for (size_t i = 0; i < 5; ++i) store_value(type, static_cast<char*>(in.at(8)) + i * bytes_of(type), parameters[i]);
}

}  // namespace

void complex_dot(DataType type, bool conjugates, const CallArguments& in) {
  const int64_t count = in.wide(0);
  const TypedVector x(type, in.at(1), in.number(2), count), y(type, in.at(3), in.number(4), count);
  store_value(type, in.at(5), dot(x, y, count, conjugates));
}

std::optional<std::string> run_typed_vectors(uint32_t function, bool wide, const CallArguments& in,
                                             const Openblas& blas) {
  const Shape shape = library::cublas::functions()[function].shape;
  const auto number = static_cast<Number>(function);
  const int64_t count = in.wide(0);
  switch (shape) {
    case Shape::kIndexEx: {
      const int64_t found = find_extreme({in, 1, count}, count, number == Number::IamaxEx);
      wide ? put(in.at(4), found) : put(in.at(4), static_cast<int32_t>(found));
      break;
    }
    case Shape::kReduceEx: {
      const TypedVector x(in, 1, count);
      store_value(in.type(5), in.at(4), number == Number::Nrm2Ex ? norm(x, count) : sum_of_sizes(x, count));
      break;
    }
    case Shape::kDotEx:
      store_value(in.type(8), in.at(7), dot({in, 1, count}, {in, 4, count}, count, number == Number::DotcEx));
      break;
    case Shape::kAxpyEx: {
      const TypedVector x(in, 3, count), y(in, 6, count);
      const Complex alpha = load(in.type(2), in.at(1));
      for (int64_t i = 0; i < count; ++i) y.set(i, y.at(i) + alpha * x.at(i));
      break;
    }
    case Shape::kScalEx: {
      const TypedVector x(in, 3, count);
      const Complex alpha = load(in.type(2), in.at(1));
      for (int64_t i = 0; i < count; ++i) x.set(i, alpha * x.at(i));
      break;
    }
    case Shape::kRotgEx:
      return make_rotation(in, blas);
    case Shape::kRotmgEx:
      make_modified_rotation(in, blas);
      break;
    default:
      run_two(shape, in);
  }
  return std::nullopt;
}

}  // namespace heddle::software
