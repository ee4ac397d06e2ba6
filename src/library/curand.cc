#include "library/curand.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "library/quasi_random.h"
#include "library/random.h"

namespace heddle::library::curand {
namespace {

constexpr uint64_t kMostNumbers = 1ull << 44;
// About what one number costs, in multiplications and additions: ten rounds of Philox for four words; logarithm, root,
// sine and cosine for two normal numbers.
constexpr double kBitsCost = 30, kNormalCost = 60;

constexpr const char* kNames[kFunctions] = {"curandGenerate",
                                            "curandGenerateUniform",
                                            "curandGenerateUniformDouble",
                                            "curandGenerateNormal",
                                            "curandGenerateNormalDouble",
                                            "curandGenerateLogNormal",
                                            "curandGenerateLogNormalDouble",
                                            "curandGeneratePoisson",
                                            "curandGeneratePoissonMethod",
                                            "curandGenerateLongLong",
                                            "curandGetDirectionVectors32",
                                            "curandGetDirectionVectors64",
                                            "curandGetScrambleConstants32",
                                            "curandGetScrambleConstants64"};

template <class Real>
void exponentiate(Real* numbers, uint64_t count) {
  std::transform(numbers, numbers + count, numbers, [](Real normal) { return std::exp(normal); });
}

}  // namespace

const char* name_of(uint32_t function) {
  return function < kFunctions ? kNames[function] : "?";
}

bool is_pseudo_random(int type) {
  return type == 100 || type == 101 || type == 121 || type == 141 || type == 142 || type == kPhilox;
}

bool is_quasi_random(int type) {
  return type >= 200 && type <= 204;
}

bool is_scrambled(int type) {
  return type == 202 || type == 204;
}

bool has_64_bits(int type) {
  return type == 203 || type == 204;
}

uint64_t table_size(Function function) {
  if (function == Function::kDirections32) return uint64_t{kMostDimensions} * 32;
  if (function == Function::kDirections64) return uint64_t{kMostDimensions} * 64;
  return kMostDimensions;
}

uint32_t bytes_of(Function function) {
  switch (function) {
    case Function::kUniformDouble:
    case Function::kNormalDouble:
    case Function::kLogNormalDouble:
    case Function::kBits64:
    case Function::kDirections64:
    case Function::kShifts64:
      return sizeof(double);
    default:
      return sizeof(float);
  }
}

std::array<uint64_t, Draw::kWords> Draw::pack() const {
  return {uint64_t{generator} << 32 | changed,
          uint64_t{static_cast<uint32_t>(type)} << 32 | static_cast<uint32_t>(ordering),
          seed,
          offset,
          position,
          output,
          count,
          std::bit_cast<uint64_t>(a),
          std::bit_cast<uint64_t>(b),
          uint64_t{dimensions} << 32 | (host ? 1 : 0)};
}

Result<Draw> Draw::unpack(std::span<const uint64_t> words) {
  if (words.size() != kWords)
    return fail(ErrorCode::kInvalidArgument, "a cuRAND call of %zu words, it takes %u", words.size(), kWords);
  return Draw{static_cast<uint32_t>(words[0] >> 32),
              static_cast<uint32_t>(words[0]),
              static_cast<int>(words[1] >> 32),
              static_cast<int>(static_cast<uint32_t>(words[1])),
              words[2],
              words[3],
              words[4],
              words[5],
              words[6],
              std::bit_cast<double>(words[7]),
              std::bit_cast<double>(words[8]),
              (words[9] & 1) != 0,
              static_cast<uint32_t>(words[9] >> 32)};
}

void generate(Function function, const Draw& draw, void* to) {
  if (is_table(function)) return write_table(function, draw, to);
  if (is_quasi_random(draw.type)) return generate_quasi_random(function, draw, to);
  const Sequence from{draw.seed, draw.position};
  auto* const floats = static_cast<float*>(to);
  auto* const doubles = static_cast<double*>(to);
  switch (function) {
    case Function::kBits:
      return draw_bits(from, static_cast<uint32_t*>(to), draw.count);
    case Function::kUniform:
      return draw_uniform(from, floats, draw.count);
    case Function::kUniformDouble:
      return draw_uniform(from, doubles, draw.count);
    case Function::kNormal:
    case Function::kLogNormal:
      draw_normal(from, floats, draw.count, static_cast<float>(draw.a), static_cast<float>(draw.b));
      if (function == Function::kLogNormal) exponentiate(floats, draw.count);
      return;
    case Function::kNormalDouble:
    case Function::kLogNormalDouble:
      draw_normal(from, doubles, draw.count, draw.a, draw.b);
      if (function == Function::kLogNormalDouble) exponentiate(doubles, draw.count);
      return;
    case Function::kPoisson:
    case Function::kPoissonMethod:
      return draw_poisson(from, static_cast<uint32_t*>(to), draw.count, draw.a);
    default:  // of quasi random generators only
      return;
  }
}

namespace {

Status check_table(Function function, const Draw& draw) {
  const char* const name = kNames[static_cast<uint32_t>(function)];
  const bool wide = function == Function::kDirections64, directions = wide || function == Function::kDirections32;
  const int first = wide ? 103 : 101;  // CURAND_DIRECTION_VECTORS_32_JOEKUO6, 64, each before its scrambled set
  if (directions && draw.ordering != first && draw.ordering != first + 1)
    return fail(ErrorCode::kInvalidArgument, "%s: set %d", name, draw.ordering);
  if (!draw.host) return fail(ErrorCode::kInvalidArgument, "%s: its table lies on the host", name);
  if (draw.count <= table_size(function)) return {};
  return fail(ErrorCode::kInvalidArgument, "%s: %llu elements", name, static_cast<unsigned long long>(draw.count));
}

Status check_quasi_random(Function function, const Draw& draw) {
  const char* const name = kNames[static_cast<uint32_t>(function)];
  if (draw.dimensions == 0 || draw.dimensions > kMostDimensions || draw.count % draw.dimensions != 0)
    return fail(ErrorCode::kInvalidArgument, "%s: %llu numbers of %u dimensions", name,
                static_cast<unsigned long long>(draw.count), draw.dimensions);
  const bool fits =
      function == Function::kBits ? !has_64_bits(draw.type) : function != Function::kBits64 || has_64_bits(draw.type);
  if (fits) return {};
  return fail(ErrorCode::kNotSupported, "%s: generators of type %d have other numbers", name, draw.type);
}

Status check_generator(Function function, const Draw& draw) {
  if (is_table(function)) return check_table(function, draw);
  if (is_quasi_random(draw.type)) return check_quasi_random(function, draw);
  if (is_pseudo_random(draw.type) && function != Function::kBits64) return {};
  return fail(ErrorCode::kNotSupported, "%s: generators of type %d are not supported",
              kNames[static_cast<uint32_t>(function)], draw.type);
}

}  // namespace

Result<Demand> demand(const Call& call) {
  if (call.function >= kFunctions)
    return fail(ErrorCode::kNotFound, "cuRAND function %u does not exist, there are %u", call.function, kFunctions);
  const auto draw = Draw::unpack(call.words);
  if (!draw) return tl::unexpected(draw.error());
  const auto function = static_cast<Function>(call.function);
  HEDDLE_TRY(check_generator(function, *draw));
  if (draw->count > kMostNumbers)
    return fail(ErrorCode::kInvalidArgument, "%s: %llu numbers", name_of(call.function),
                static_cast<unsigned long long>(draw->count));
  const bool poisson = function == Function::kPoisson || function == Function::kPoissonMethod;
  if (poisson && !(draw->a > 0 && draw->a < 4294967296.0))
    return fail(ErrorCode::kInvalidArgument, "%s: a mean of %g", name_of(call.function), draw->a);
  Demand demand;
  const uint64_t bytes = draw->count * bytes_of(function);
  if (bytes > 0) demand.operands.push_back({draw->output, bytes, true, 0});
  demand.bytes = bytes;
  const bool cheap = function == Function::kBits || function == Function::kUniform;
  demand.flops = static_cast<double>(draw->count) * (cheap ? kBitsCost : kNormalCost);
  demand.blocks = draw->host ? 1 : draw->count / Demand::kThreads + 1;
  return demand;
}

}  // namespace heddle::library::curand
