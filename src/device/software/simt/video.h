#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/software/simt/op.h"

namespace heddle::software {

// A video instruction (vadd, vabsdiff4, ...): what it does to the 1, 2 or 4 parts of its sources. Kept in Op::imm.
struct VideoForm {
  enum class Operation : uint8_t { kAdd, kSubtract, kAverage, kAbsoluteDifference, kMinimum, kMaximum };
  Operation operation = Operation::kAdd;
  uint8_t parts = 1;
  bool d_signed = false, a_signed = false, b_signed = false;
  bool saturate = false;
  bool accumulate = false;  // .add: d = c + the sum of all parts
  uint8_t unused = 0;
};
static_assert(sizeof(VideoForm) == sizeof(int64_t));

// By opcode and modifiers; none if that form is not supported.
std::optional<VideoForm> video_form(const std::string& opcode, const std::vector<std::string>& modifiers);

// d = a op b; with 2 or 4 parts also c, which is only looked at by .add.
void video(Warp& warp, const Op& op);

}  // namespace heddle::software
