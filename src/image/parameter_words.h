#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "image/effects.h"
#include "image/module_info.h"

namespace heddle::image {

// A word of a launch's parameters that may be an address through which its kernel reads or writes. Most that are none
// (sizes, doubles) lead nowhere.
struct ParameterWord {
  uint64_t value = 0;
  bool read = false, written = false;
};

// Calls visit(word) for each: at multiples of 8 bytes, and in parameters whose parts the kernel puts together to
// addresses at every byte. `block` is a launch's parameters, laid out as `parameters` says; what lies beyond it is left
// out. What the kernel reaches without parameters (KernelEffects::follows_memory ...) is not told here.
template <class Visit>
void each_parameter_word(std::span<const Parameter> parameters, const KernelEffects& effects,
                         std::span<const std::byte> block, Visit visit) {
  constexpr uint64_t kWord = sizeof(uint64_t);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const uint64_t bit = uint64_t{1} << KernelEffects::bit_of(i);
    const uint64_t step = (effects.in_pieces & bit) != 0 ? 1 : kWord;
    ParameterWord word{0, (effects.read & bit) != 0, (effects.written & bit) != 0};
    if (!word.read && !word.written) continue;
    const uint64_t end = std::min<uint64_t>(uint64_t{parameters[i].offset} + parameters[i].size, block.size());
    for (uint64_t at = (parameters[i].offset + step - 1) / step * step; at + kWord <= end; at += step) {
      std::memcpy(&word.value, block.data() + at, kWord);
      visit(word);
    }
  }
}

}  // namespace heddle::image
