#pragma once

#include <bit>
#include <cstdint>

namespace heddle::software {

template <class Visit>
void for_each_lane(uint32_t lanes, Visit visit) {
  for (; lanes; lanes &= lanes - 1) visit(static_cast<uint32_t>(std::countr_zero(lanes)));
}

}  // namespace heddle::software
