#include "device/software/libraries/blas_call.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "device/software/libraries/factorizations.h"
#include "device/software/libraries/products.h"
#include "device/software/libraries/typed_vectors.h"

namespace heddle::software {
namespace {

using namespace library::cublas;  // NOLINT(google-build-using-namespace): the names of what this carries out

template <class Value>
void write(void* to, Value value) {
  std::memcpy(to, &value, sizeof value);
}

// asum, nrm2, dot, iamax: functions in Fortran too; the answer's place is the last argument.
void run_function(const Function& function, bool wide, const CallArguments& arguments, void* code) {
  const auto taken = arguments.all().first(arguments.count() - 1);
  void* const answer = arguments.at(arguments.count() - 1);
  if (function.shape == Shape::kIndex) {
    const auto index = invoke<int32_t>(code, taken);
    return wide ? write(answer, int64_t{index}) : write(answer, index);
  }
  const DataType type = type_of(function.element);
  switch (function.has(Kind::kRealAnswer) ? real_of(type) : type) {
    case DataType::kF64:
      return write(answer, invoke<double>(code, taken));
    default:
      return write(answer, invoke<float>(code, taken));
  }
}

// cuBLAS's trmm leaves its second matrix as it is.
void run_trmm(const Function& function, const CallArguments& arguments, void* code) {
  const int32_t m = arguments.number(4), n = arguments.number(5), from_ld = arguments.number(10),
                ld = arguments.number(12);
  const uint64_t element = bytes_of(type_of(function.element));
  if (arguments.at(9) != arguments.at(11) || from_ld != ld) {
    for (int64_t column = 0; column < n; ++column)
      std::memmove(static_cast<char*>(arguments.at(11)) + static_cast<uint64_t>(column * ld) * element,
                   static_cast<const char*>(arguments.at(9)) + static_cast<uint64_t>(column * from_ld) * element,
                   static_cast<uint64_t>(m) * element);
  }
  std::array<void*, 11> taken;
  std::copy_n(arguments.all().begin(), 9, taken.begin());
  taken[9] = arguments.at(11), taken[10] = arguments.at(12);
  invoke<void>(code, taken);
}

// Reads the arguments of the functions that multiply matrices; they differ in what stands between.
struct ProductReader {
  const CallArguments& arguments;
  DataType type;
  bool typed, strided;
  size_t next = 6;

  StoredMatrix matrix(uint64_t& stride) {
    StoredMatrix read{type, arguments.at(next++), 1};
    if (typed) read.type = static_cast<DataType>(arguments.number(next++));
    read.ld = arguments.number(next++);
    if (strided) stride = static_cast<uint64_t>(arguments.wide(next++)) * bytes_of(read.type);
    return read;
  }
};

void* moved(void* base, uint64_t bytes) {
  return static_cast<char*>(base) + bytes;
}

void run_product(const Function& function, const CallArguments& arguments, const Openblas& blas) {
  const Shape shape = function.shape;
  const bool computes = shape == Shape::kGemmEx || shape == Shape::kGemmStridedEx || shape == Shape::kGemmBatchedEx;
  const bool strided = shape == Shape::kGemmStrided || shape == Shape::kGemmStridedEx;
  const bool arrays = shape == Shape::kGemmBatched || shape == Shape::kGemmBatchedEx;
  ProductReader reader{arguments, type_of(function.element), computes || shape == Shape::kSgemmEx, strided};
  ProductCall call{arguments.letter(0),
                   arguments.letter(1),
                   arguments.number(2),
                   arguments.number(3),
                   arguments.number(4),
                   arguments.at(5),
                   nullptr,
                   {},
                   {},
                   {},
                   type_of(function.element)};
  uint64_t strides[3] = {};
  call.a = reader.matrix(strides[0]);
  call.b = reader.matrix(strides[1]);
  call.beta = arguments.at(reader.next++);
  call.c = reader.matrix(strides[2]);
  const uint64_t batch = strided || arrays ? static_cast<uint64_t>(arguments.wide(reader.next++)) : 1;
  if (computes) call.compute = compute_type(arguments.number(reader.next))->type;
  for (uint64_t i = 0; i < batch; ++i) {
    ProductCall one = call;
    if (strided) {
      one.a.data = moved(call.a.data, i * strides[0]);
      one.b.data = moved(call.b.data, i * strides[1]);
      one.c.data = moved(call.c.data, i * strides[2]);
    } else if (arrays) {
      one.a.data = static_cast<void**>(call.a.data)[i];
      one.b.data = static_cast<void**>(call.b.data)[i];
      one.c.data = static_cast<void**>(call.c.data)[i];
    }
    multiply(one, blas);
  }
}

// y = alpha op(A) x + beta y, once for each of a batch.
void run_gemv_batch(const Function& function, const CallArguments& arguments, const Openblas& blas) {
  const bool strided = function.shape == Shape::kGemvStrided;
  const DataType from = operand_type(function.element), to = result_type(function.element);
  const size_t step = strided ? 3 : 2;  // from one operand's arguments to the next's
  const size_t a = 4, x = a + step, beta = x + step, y = beta + 1, batch = y + step;
  const auto place = [&](size_t argument, DataType type, int64_t i) -> void* {
    if (!strided) return arguments.element(argument, static_cast<size_t>(i));
    return static_cast<char*>(arguments.at(argument)) + i * arguments.wide(argument + 2) * int64_t{bytes_of(type)};
  };
  for (int64_t i = 0; i < arguments.wide(batch); ++i) {
    multiply_vector({arguments.letter(0),
                     arguments.number(1),
                     arguments.number(2),
                     arguments.at(3),
                     arguments.at(beta),
                     {from, place(a, from, i), arguments.number(a + 1)},
                     {from, place(x, from, i), arguments.number(x + 1)},
                     {to, place(y, to, i), arguments.number(y + 1)},
                     type_of(function.element)},
                    blas);
  }
}

// C = alpha op(A) op(B)' + beta C: the second matrix is taken the other way round.
void run_syrkx(const Function& function, const CallArguments& a, const Openblas& blas) {
  const DataType type = type_of(function.element);
  const bool transposed = a.letter(1) != 'N', hermitian = function.has(Kind::kRealScalar);
  const char turned = hermitian ? 'C' : 'T';
  alignas(16) char beta[16] = {};  // real where C is Hermitian
  std::memcpy(beta, a.at(9), bytes_of(hermitian ? real_of(type) : type));
  const ProductCall call{transposed ? turned : 'N',
                         transposed ? 'N' : turned,
                         a.number(2),
                         a.number(2),
                         a.number(3),
                         a.at(4),
                         beta,
                         {type, a.at(5), a.number(6)},
                         {type, a.at(7), a.number(8)},
                         {type, a.at(10), a.number(11)},
                         type};
  symmetric_multiply(call, a.letter(0) == 'U', hermitian, blas);
}

// CsyrkEx and its kin of the one type that is served: without the arguments that name it.
void run_syrk_typed(const CallArguments& a, void* code) {
  invoke<void>(code,
               std::array{a.at(0), a.at(1), a.at(2), a.at(3), a.at(4), a.at(5), a.at(7), a.at(8), a.at(9), a.at(11)});
}

void run_trsm_batched(const CallArguments& a, void* code) {
  for (int32_t i = 0; i < a.number(11); ++i) {
    const auto which = static_cast<size_t>(i);
    invoke<void>(code, std::array{a.at(0), a.at(1), a.at(2), a.at(3), a.at(4), a.at(5), a.at(6), a.element(7, which),
                                  a.at(8), a.element(9, which), a.at(10)});
  }
}

// A triangle from packed form into a matrix or back, column by column.
void run_packing(const Function& function, const CallArguments& a) {
  const bool packs = function.shape == Shape::kTrttp, upper = a.letter(0) == 'U';
  const int64_t n = a.number(1), ld = a.number(packs ? 3 : 4);
  const uint64_t element = bytes_of(type_of(function.element));
  char* packed = static_cast<char*>(a.at(packs ? 4 : 2));
  char* const whole = static_cast<char*>(a.at(packs ? 2 : 3));
  for (int64_t column = 0; column < n; ++column) {
    const int64_t first = upper ? 0 : column, rows = upper ? column + 1 : n - column;
    char* const stored = whole + static_cast<uint64_t>(first + column * ld) * element;
    const uint64_t bytes = static_cast<uint64_t>(rows) * element;
    std::memcpy(packs ? packed : stored, packs ? stored : packed, bytes);
    packed += bytes;
  }
}

void run_geam(const Function& function, const CallArguments& a) {
  const DataType type = type_of(function.element);
  add_matrices({a.letter(0),
                a.letter(1),
                a.number(2),
                a.number(3),
                0,
                a.at(4),
                a.at(7),
                {type, a.at(5), a.number(6)},
                {type, a.at(8), a.number(9)},
                {type, a.at(10), a.number(11)},
                type});
}

void run_dgmm(const Function& function, const CallArguments& a) {
  const DataType type = type_of(function.element);
  scale_matrix({a.letter(0) == 'L',
                a.number(1),
                a.number(2),
                {type, a.at(3), a.number(4)},
                {type, a.at(7), a.number(8)},
                a.at(5),
                a.number(6)});
}

// Sizes that Fortran's integers cannot hold; batches are counted here.
bool fits(const Function& function, std::span<const uint64_t> words) {
  uint32_t at = 0;
  for (const Kind kind : function.kinds) {
    const auto value = static_cast<int64_t>(words[at]);
    if (kind == Kind::kDim && value != static_cast<int32_t>(value)) return false;
    at += words_of(kind);
  }
  return true;
}

}  // namespace

std::optional<std::string> run_cublas(const library::Call& call, const CheckedArrays& arrays, const Openblas& blas) {
  const Function& function = functions()[call.function];
  const Setting setting = *Setting::unpack(call.words);
  const auto words = call.words.subspan(Setting::kWords);
  if (!fits(function, words)) return stringf("%s: OpenBLAS takes sizes of 31 bits", function.name);
  const CallArguments arguments(function, setting, words, arrays);
  void* const code = *function.blas ? blas.function(function.blas) : nullptr;
  if (*function.blas && !code) return stringf("%s: this OpenBLAS has no %s", function.name, function.blas);
  switch (function.shape) {
    case Shape::kIndex:
    case Shape::kReduce:
    case Shape::kDot:
      if (!code) {
        const auto number = static_cast<Number>(call.function);
        complex_dot(type_of(function.element), number == Number::Cdotc_v2 || number == Number::Zdotc_v2, arguments);
        break;
      }
      run_function(function, setting.wide, arguments, code);
      break;
    case Shape::kTrmm:
      run_trmm(function, arguments, code);
      break;
    case Shape::kGemm:
    case Shape::kGemmStrided:
    case Shape::kGemmBatched:
    case Shape::kSgemmEx:
    case Shape::kGemmEx:
    case Shape::kGemmStridedEx:
    case Shape::kGemmBatchedEx:
      run_product(function, arguments, blas);
      break;
    case Shape::kGemvStrided:
    case Shape::kGemvBatched:
      run_gemv_batch(function, arguments, blas);
      break;
    case Shape::kSyrkEx:
      run_syrk_typed(arguments, code);
      break;
    case Shape::kTrsmBatched:
      run_trsm_batched(arguments, code);
      break;
    case Shape::kSyrkx:
      run_syrkx(function, arguments, blas);
      break;
    case Shape::kGeam:
      run_geam(function, arguments);
      break;
    case Shape::kDgmm:
      run_dgmm(function, arguments);
      break;
    case Shape::kTpttr:
    case Shape::kTrttp:
      run_packing(function, arguments);
      break;
    case Shape::kGetrf:
    case Shape::kGetri:
    case Shape::kGetrs:
    case Shape::kMatinv:
    case Shape::kGeqrf:
    case Shape::kGels:
      run_factorization(function, arguments, blas);
      break;
    case Shape::kIndexEx:
    case Shape::kReduceEx:
    case Shape::kDotEx:
    case Shape::kAxpyEx:
    case Shape::kScalEx:
    case Shape::kCopyEx:
    case Shape::kSwapEx:
    case Shape::kRotEx:
    case Shape::kRotmEx:
    case Shape::kRotgEx:
    case Shape::kRotmgEx:
      return run_typed_vectors(call.function, setting.wide, arguments, blas);
    default:
      invoke<void>(code, arguments.all());
  }
  return std::nullopt;
}

}  // namespace heddle::software
