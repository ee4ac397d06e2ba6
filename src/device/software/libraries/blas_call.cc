#include "device/software/libraries/blas_call.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "device/software/libraries/products.h"

namespace heddle::software {
namespace {

using namespace library::cublas;  // NOLINT(google-build-using-namespace): the names of what this carries out

constexpr size_t kMostArguments = 24;

// Arguments as Fortran has them: each an address.
class Arguments {
 public:
  Arguments(const Function& function, const Setting& setting, std::span<const uint64_t> words,
            const CheckedArrays& arrays)
      : function_(function), arrays_(arrays) {
    uint32_t at = 0;
    for (const Kind kind : function.kinds) {
      add(kind, setting, &words[at]);
      at += words_of(kind);
    }
  }

  size_t count() const { return function_.kinds.size(); }
  void* at(size_t index) const { return pointers_[index]; }
  std::span<void* const> all() const { return std::span(pointers_).first(count()); }
  char letter(size_t index) const { return letters_[index]; }
  int32_t number(size_t index) const { return numbers_[index]; }
  uint64_t wide(size_t index) const { return wide_[index]; }

 private:
  void add(Kind kind, const Setting& setting, const uint64_t* word) {
    const size_t index = next_++;
    wide_[index] = *word;
    numbers_[index] = static_cast<int32_t>(*word);
    switch (kind) {
      case Kind::kOp:
        return add_letter(index, "NTC"[*word]);
      case Kind::kFill:
        return add_letter(index, "LU"[*word]);
      case Kind::kSide:
        return add_letter(index, "LR"[*word]);
      case Kind::kDiag:
        return add_letter(index, "NU"[*word]);
      case Kind::kScalar:
      case Kind::kParameters:
        pointers_[index] = setting.scalars_on_device ? address(*word) : const_cast<uint64_t*>(word);
        return;
      case Kind::kIn:
      case Kind::kOut:
      case Kind::kAnswer: {
        const auto array = arrays_.find(*word);
        pointers_[index] = array == arrays_.end() ? address(*word) : const_cast<uint64_t*>(array->second.data());
        return;
      }
      default:
        pointers_[index] = &numbers_[index];
    }
  }
  void add_letter(size_t index, char letter) {
    letters_[index] = letter;
    pointers_[index] = &letters_[index];
  }
  static void* address(uint64_t word) { return reinterpret_cast<void*>(word); }  // NOLINT(performance-no-int-to-ptr)

  const Function& function_;
  const CheckedArrays& arrays_;
  size_t next_ = 0;
  std::array<void*, kMostArguments> pointers_{};
  std::array<char, kMostArguments> letters_{};
  std::array<int32_t, kMostArguments> numbers_{};
  std::array<uint64_t, kMostArguments> wide_{};
};

template <class Return, size_t... kIndex>
Return invoke(void* function, std::span<void* const> arguments, std::index_sequence<kIndex...>) {
  return reinterpret_cast<Return (*)(decltype((void)kIndex, static_cast<void*>(nullptr))...)>(function)(
      arguments[kIndex]...);
}

// A function of as many addresses as there are.
template <class Return, size_t kCount = 3>
Return invoke(void* function, std::span<void* const> arguments) {
  if constexpr (kCount < kMostArguments) {
    if (arguments.size() != kCount) return invoke<Return, kCount + 1>(function, arguments);
  }
  return invoke<Return>(function, arguments, std::make_index_sequence<kCount>());
}

template <class Value>
void write(void* to, Value value) {
  std::memcpy(to, &value, sizeof value);
}

// asum, nrm2, dot, iamax: functions in Fortran too; the answer's place is the last argument.
void run_function(const Function& function, bool wide, const Arguments& arguments, void* code) {
  const auto taken = arguments.all().first(arguments.count() - 1);
  void* const answer = arguments.at(arguments.count() - 1);
  if (function.shape == Shape::kIndex) {
    const auto index = invoke<int32_t>(code, taken);
    return wide ? write(answer, int64_t{index}) : write(answer, index);
  }
  if (function.element == Element::kF64) return write(answer, invoke<double>(code, taken));
  write(answer, invoke<float>(code, taken));
}

// cuBLAS's trmm leaves its second matrix as it is.
void run_trmm(const Function& function, const Arguments& arguments, void* code) {
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
  const Arguments& arguments;
  DataType type;
  bool typed, strided;
  size_t next = 6;

  StoredMatrix matrix(uint64_t& stride) {
    StoredMatrix read{type, arguments.at(next++), 1};
    if (typed) read.type = static_cast<DataType>(arguments.number(next++));
    read.ld = arguments.number(next++);
    if (strided) stride = arguments.wide(next++) * bytes_of(read.type);
    return read;
  }
};

void* moved(void* base, uint64_t bytes) {
  return static_cast<char*>(base) + bytes;
}

void run_product(const Function& function, const Arguments& arguments, const Openblas& blas) {
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
  const uint64_t batch = strided || arrays ? arguments.wide(reader.next++) : 1;
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

// C = alpha op(A) op(B)' + beta C: the second matrix is taken the other way round.
void run_syrkx(const Function& function, const Arguments& a, const Openblas& blas) {
  const DataType type = type_of(function.element);
  const bool transposed = a.letter(1) != 'N';
  const ProductCall call{transposed ? 'T' : 'N',
                         transposed ? 'N' : 'T',
                         a.number(2),
                         a.number(2),
                         a.number(3),
                         a.at(4),
                         a.at(9),
                         {type, a.at(5), a.number(6)},
                         {type, a.at(7), a.number(8)},
                         {type, a.at(10), a.number(11)},
                         type};
  symmetric_multiply(call, a.letter(0) == 'U', blas);
}

void run_geam(const Function& function, const Arguments& a) {
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

void run_dgmm(const Function& function, const Arguments& a) {
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
  const Arguments arguments(function, setting, words, arrays);
  void* const code = *function.blas ? blas.function(function.blas) : nullptr;
  if (*function.blas && !code) return stringf("%s: this OpenBLAS has no %s", function.name, function.blas);
  switch (function.shape) {
    case Shape::kIndex:
    case Shape::kReduce:
    case Shape::kDot:
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
    case Shape::kSyrkx:
      run_syrkx(function, arguments, blas);
      break;
    case Shape::kGeam:
      run_geam(function, arguments);
      break;
    case Shape::kDgmm:
      run_dgmm(function, arguments);
      break;
    default:
      invoke<void>(code, arguments.all());
  }
  return std::nullopt;
}

}  // namespace heddle::software
