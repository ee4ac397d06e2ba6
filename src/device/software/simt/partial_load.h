#pragma once

#include "device/software/simt/op.h"

namespace heddle::software {

// What cp.async reads when it is told how much: the first c bytes of `count` words at a + imm in global memory, the
// rest of the words zero; all zero where predicate b holds. b and c may be none. Words go to the registers listed at
// extra.
void load_partially(Warp& warp, const Op& op);

}  // namespace heddle::software
