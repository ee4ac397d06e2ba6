#include "library/curand.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
                                            "curandGeneratePoisson"};

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

uint32_t bytes_of(Function function) {
  switch (function) {
    case Function::kUniformDouble:
    case Function::kNormalDouble:
    case Function::kLogNormalDouble:
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
          host ? 1u : 0u};
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
              words[9] != 0};
}

void generate(Function function, const Draw& draw, void* to) {
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
      return draw_poisson(from, static_cast<uint32_t*>(to), draw.count, draw.a);
  }
}

Result<Demand> demand(const Call& call) {
  if (call.function >= kFunctions)
    return fail(ErrorCode::kNotFound, "cuRAND function %u does not exist, there are %u", call.function, kFunctions);
  const auto draw = Draw::unpack(call.words);
  if (!draw) return tl::unexpected(draw.error());
  const auto function = static_cast<Function>(call.function);
  if (!is_pseudo_random(draw->type))
    return fail(ErrorCode::kNotSupported, "%s: generators of type %d are not supported", name_of(call.function),
                draw->type);
  if (draw->count > kMostNumbers)
    return fail(ErrorCode::kInvalidArgument, "%s: %llu numbers", name_of(call.function),
                static_cast<unsigned long long>(draw->count));
  if (function == Function::kPoisson && !(draw->a > 0 && draw->a < 4294967296.0))
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
