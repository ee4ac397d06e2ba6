// Which memory a call of cuBLAS touches, and how much work it is: each shape of function has its own reader.

#include "library/operand_reader.h"

namespace heddle::library::cublas {
namespace {

void read(OperandReader& in, Shape shape) {
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
    case Shape::kRotg:
    case Shape::kRotmg:
      return read_vectors(in, shape);
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
      return read_typed_vectors(in, shape);
    case Shape::kGemv:
    case Shape::kGbmv:
    case Shape::kGemvStrided:
    case Shape::kGemvBatched:
    case Shape::kGer:
    case Shape::kSymv:
    case Shape::kSbmv:
    case Shape::kSpmv:
    case Shape::kSyr:
    case Shape::kSyr2:
    case Shape::kSpr:
    case Shape::kSpr2:
    case Shape::kTriangular:
    case Shape::kTriangularBand:
    case Shape::kTriangularPacked:
      return read_matrix_vector(in, shape);
    case Shape::kGetrf:
    case Shape::kGetri:
    case Shape::kGetrs:
    case Shape::kMatinv:
    case Shape::kGeqrf:
    case Shape::kGels:
      return read_factorizations(in, shape);
    default:
      return read_matrices(in, shape);
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
  OperandReader reader(function, *setting, call.words.subspan(Setting::kWords));
  read(reader, function.shape);
  return reader.demand();
}

}  // namespace heddle::library::cublas
