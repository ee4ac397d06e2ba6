// The video instructions on whole registers; selecting parts of a source (a.b1) is not supported. Too rare to be worth
// vectors: lane by lane.

#include "device/software/simt/video.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "device/software/simt/warp.h"

namespace heddle::software {
namespace {

using Operation = VideoForm::Operation;

constexpr std::pair<const char*, Operation> kOperations[] = {
    {"vadd", Operation::kAdd},      {"vsub", Operation::kSubtract},
    {"vavrg", Operation::kAverage}, {"vabsdiff", Operation::kAbsoluteDifference},
    {"vmin", Operation::kMinimum},  {"vmax", Operation::kMaximum},
};

int64_t part_of(uint32_t value, uint32_t part, uint32_t bits, bool is_signed) {
  uint64_t field = uint64_t{value} >> (part * bits) << (64 - bits);
  return is_signed ? static_cast<int64_t>(field) >> (64 - bits) : static_cast<int64_t>(field >> (64 - bits));
}

int64_t operate(Operation operation, int64_t a, int64_t b) {
  switch (operation) {
    case Operation::kAdd:
      return a + b;
    case Operation::kSubtract:
      return a - b;
    case Operation::kAverage:  // halves are rounded away from zero
      return (a + b + (a + b >= 0 ? 1 : 0)) >> 1;
    case Operation::kAbsoluteDifference:
      return a < b ? b - a : a - b;
    case Operation::kMinimum:
      return std::min(a, b);
    case Operation::kMaximum:
      return std::max(a, b);
  }
  return 0;
}

int64_t clamp_to(int64_t value, uint32_t bits, bool is_signed) {
  int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, is_signed ? -most - 1 : 0, most);
}

// vadd.u32.u32.u32.sat wraps around on an H200, whatever PTX says of .sat; programs get what the GPU gives.
bool wraps(const VideoForm& form) {
  return form.operation == Operation::kAdd && form.parts == 1 && !form.d_signed && !form.a_signed && !form.b_signed;
}

uint32_t compute(const VideoForm& form, uint32_t a, uint32_t b, uint32_t c) {
  uint32_t bits = 32u / form.parts;
  auto mask = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  uint32_t result = form.accumulate ? c : 0;
  for (uint32_t part = 0; part < form.parts; ++part) {
    int64_t value =
        operate(form.operation, part_of(a, part, bits, form.a_signed), part_of(b, part, bits, form.b_signed));
    if (form.saturate && !wraps(form)) value = clamp_to(value, bits, form.d_signed);
    if (form.accumulate) {
      result += static_cast<uint32_t>(value);
    } else {
      result |= (static_cast<uint32_t>(value) & mask) << (part * bits);
    }
  }
  return result;
}

}  // namespace

std::optional<VideoForm> video_form(const std::string& opcode, const std::vector<std::string>& modifiers) {
  VideoForm form;
  std::string name = opcode;
  if (name.back() == '2' || name.back() == '4') {
    form.parts = static_cast<uint8_t>(name.back() - '0');
    name.pop_back();
  }
  auto found = std::find_if(std::begin(kOperations), std::end(kOperations),
                            [&](const auto& operation) { return name == operation.first; });
  if (found == std::end(kOperations) || modifiers.size() < 3) return std::nullopt;
  form.operation = found->second;
  bool* signs[] = {&form.d_signed, &form.a_signed, &form.b_signed};
  for (size_t i = 0; i < 3; ++i) {
    if (modifiers[i] != "s32" && modifiers[i] != "u32") return std::nullopt;
    *signs[i] = modifiers[i] == "s32";
  }
  for (size_t i = 3; i < modifiers.size(); ++i) {
    bool known = modifiers[i] == "sat" || (modifiers[i] == "add" && form.parts > 1);
    if (!known) return std::nullopt;
    (modifiers[i] == "sat" ? form.saturate : form.accumulate) = true;
  }
  return form;
}

void video(Warp& warp, const Op& op) {
  auto form = std::bit_cast<VideoForm>(op.imm);
  std::array<std::array<uint32_t, kLanes>, 3> sources = {};
  const uint32_t offsets[] = {op.a, op.b, op.c};
  for (size_t i = 0; i < 3; ++i)
    if (offsets[i] != Op::kNone) std::memcpy(sources[i].data(), warp.registers + offsets[i], sizeof sources[i]);
  for (uint32_t rest = warp.active; rest; rest &= rest - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    uint32_t result = compute(form, sources[0][lane], sources[1][lane], sources[2][lane]);
    std::memcpy(warp.registers + op.d + lane * 4, &result, sizeof result);
  }
}

}  // namespace heddle::software
