#include "library/cufft.h"

#include <algorithm>
#include <cmath>

namespace heddle::library::cufft {
namespace {

constexpr uint64_t kMostBytes = 1ull << 48;  // beyond any memory
constexpr const char* kNames[kFunctions] = {"cufftExecC2C", "cufftExecR2C", "cufftExecC2R",       "cufftExecZ2Z",
                                            "cufftExecD2Z", "cufftExecZ2D", "cufftMakePlanMany64"};
constexpr int kTypes[kFunctions] = {0x29, 0x2a, 0x2c, 0x69, 0x6a, 0x6c, 0};
constexpr uint64_t kForward = 1, kInBasic = 2, kOutBasic = 4;

// A basic side. Where real numbers become complex ones in place, their rows are padded to the complex ones' length.
Side side_of(const Transform& transform, const Layout& layout, bool real, bool half, bool padded, bool wide) {
  Side side;
  const auto& size = transform.size;
  side.layout = layout;
  side.last = half ? size[2] / 2 + 1 : size[2];
  side.bytes = (real ? 1u : 2u) * (wide ? 8u : 4u);
  if (!layout.basic) return side;
  const int64_t row = padded ? 2 * (size[2] / 2 + 1) : side.last;
  side.layout = {true, {size[0], size[1], row}, 1, size[0] * size[1] * row};
  return side;
}

bool in_place(const Transform& transform) {
  return transform.input == transform.output;
}

// From a side's first byte to behind its last; 0: more than any memory.
uint64_t extent(const Transform& transform, const Side& side) {
  const auto& [basic, embed, stride, distance] = side.layout;
  const double last = static_cast<double>(transform.batch - 1) * static_cast<double>(distance) +
                      ((static_cast<double>(transform.size[0] - 1) * static_cast<double>(embed[1]) +
                        static_cast<double>(transform.size[1] - 1)) *
                           static_cast<double>(embed[2]) +
                       static_cast<double>(side.last - 1)) *
                          static_cast<double>(stride);
  if (last * side.bytes > static_cast<double>(kMostBytes)) return 0;
  const int64_t index = side.at(transform.batch - 1, transform.size[0] - 1, transform.size[1] - 1, side.last - 1);
  return (static_cast<uint64_t>(index) + 1) * side.bytes;
}

Status check(const Transform& transform, const char* name) {
  const auto refuse = [name](const char* what, int64_t value) {
    return fail(ErrorCode::kInvalidArgument, "%s: %s is %lld", name, what, static_cast<long long>(value));
  };
  if (function_of(transform.type) == Function::kSize) return refuse("the type", transform.type);
  if (transform.rank < 1 || transform.rank > 3) return refuse("the rank", transform.rank);
  for (const int64_t size : transform.size) {
    if (size < 1 || size > INT64_C(1) << 40) return refuse("a size", size);
  }
  double numbers = static_cast<double>(transform.batch);
  for (const int64_t size : transform.size) numbers *= static_cast<double>(size);
  if (numbers > static_cast<double>(kMostBytes))
    return fail(ErrorCode::kInvalidArgument, "%s: %g numbers", name, numbers);
  if (transform.batch < 1 || transform.batch > INT64_C(1) << 40) return refuse("the batch", transform.batch);
  for (const Layout* layout : {&transform.in, &transform.out}) {
    if (layout->basic) continue;
    if (layout->stride < 1) return refuse("a stride", layout->stride);
    if (layout->distance < 0) return refuse("a distance", layout->distance);
    for (const int64_t embed : layout->embed) {
      if (embed < 1) return refuse("a size that the transform is a part of", embed);
    }
  }
  return {};
}

}  // namespace

const char* name_of(uint32_t function) {
  return function < kFunctions ? kNames[function] : "?";
}

int type_of(Function function) {
  return kTypes[static_cast<uint32_t>(function)];
}

Function function_of(int type) {
  const auto* const found = std::find(std::begin(kTypes), std::end(kTypes) - 1, type);
  return static_cast<Function>(found - std::begin(kTypes));
}

bool is_double(Function function) {
  return function >= Function::kZ2Z && function <= Function::kZ2D;
}

bool from_real(Function function) {
  return function == Function::kR2C || function == Function::kD2Z;
}

bool to_real(Function function) {
  return function == Function::kC2R || function == Function::kZ2D;
}

Side input_of(const Transform& transform, Function function) {
  const bool real = from_real(function);
  return side_of(transform, transform.in, real, to_real(function), real && in_place(transform), is_double(function));
}

Side output_of(const Transform& transform, Function function) {
  const bool real = to_real(function);
  return side_of(transform, transform.out, real, from_real(function), real && in_place(transform), is_double(function));
}

std::array<uint64_t, Transform::kWords> Transform::pack() const {
  const uint64_t flags = (forward ? kForward : 0) | (in.basic ? kInBasic : 0) | (out.basic ? kOutBasic : 0);
  const auto word = [](int64_t value) { return static_cast<uint64_t>(value); };
  return {uint64_t{static_cast<uint32_t>(type)} << 32 | uint64_t{rank} << 8 | flags,
          word(size[0]),
          word(size[1]),
          word(size[2]),
          word(in.embed[0]),
          word(in.embed[1]),
          word(in.embed[2]),
          word(in.stride),
          word(in.distance),
          word(out.embed[0]),
          word(out.embed[1]),
          word(out.embed[2]),
          word(out.stride),
          word(out.distance),
          word(batch),
          input,
          output,
          work,
          work_bytes};
}

Result<Transform> Transform::unpack(std::span<const uint64_t> words) {
  if (words.size() != kWords)
    return fail(ErrorCode::kInvalidArgument, "a cuFFT call of %zu words, it takes %u", words.size(), kWords);
  const auto number = [&](size_t index) { return static_cast<int64_t>(words[index]); };
  Transform read;
  read.type = static_cast<int>(words[0] >> 32);
  read.rank = static_cast<uint32_t>(words[0] >> 8 & 0xffffff);
  read.forward = (words[0] & kForward) != 0;
  read.size = {number(1), number(2), number(3)};
  read.in = {(words[0] & kInBasic) != 0, {number(4), number(5), number(6)}, number(7), number(8)};
  read.out = {(words[0] & kOutBasic) != 0, {number(9), number(10), number(11)}, number(12), number(13)};
  read.batch = number(14);
  read.input = words[15], read.output = words[16];
  read.work = words[17], read.work_bytes = words[18];
  return read;
}

Result<Demand> demand(const Call& call) {
  if (call.function >= kFunctions)
    return fail(ErrorCode::kNotFound, "cuFFT function %u does not exist, there are %u", call.function, kFunctions);
  const auto transform = Transform::unpack(call.words);
  if (!transform) return tl::unexpected(transform.error());
  const char* const name = name_of(call.function);
  const auto function = static_cast<Function>(call.function);
  HEDDLE_TRY(check(*transform, name));
  if (function != Function::kSize && function_of(transform->type) != function)
    return fail(ErrorCode::kInvalidArgument, "%s: a plan of type %#x", name, static_cast<unsigned>(transform->type));
  const Function kind = function_of(transform->type);
  const uint64_t in = extent(*transform, input_of(*transform, kind)),
                 out = extent(*transform, output_of(*transform, kind));
  if (in == 0 || out == 0) return fail(ErrorCode::kInvalidArgument, "%s: larger than any memory", name);
  Demand demand;
  if (function == Function::kSize) {
    demand.operands.push_back({transform->output, sizeof(SizeAnswer), true, 0});
    return demand;
  }
  // Of transforms to real numbers cuFFT may use the input as space.
  demand.operands.push_back({transform->input, in, to_real(function) || transform->input == transform->output, 0});
  if (transform->input != transform->output || out > in) demand.operands.push_back({transform->output, out, true, 0});
  if (transform->work_bytes > 0) demand.operands.push_back({transform->work, transform->work_bytes, true, 0});
  const double points = static_cast<double>(transform->size[0]) * static_cast<double>(transform->size[1]) *
                        static_cast<double>(transform->size[2]);
  const double all = points * static_cast<double>(transform->batch);
  demand.bytes = in + out;
  demand.flops =
      5 * all * std::max(1.0, std::log2(points)) * (kind == Function::kC2C || kind == Function::kZ2Z ? 1 : 0.5);
  demand.blocks = static_cast<uint64_t>(std::clamp(all / (4 * Demand::kThreads), 1.0, 2147483647.0));
  return demand;
}

}  // namespace heddle::library::cufft
