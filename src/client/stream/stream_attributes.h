#pragma once

#include "client/stream_ref.h"

namespace heddle::client {

// Attributes that are hints: what a stream or a launch may ask for of caches and of waiting. heddle does nothing with
// them (cudaDevAttrMaxAccessPolicyWindowSize is 0), and programs may ask for what they set.
bool is_hint(int attribute);  // launch.cc

inline constexpr int kLeastPriority = 0, kGreatestPriority = -5;

// A new stream is in this slot.
void forget_attributes(const StreamRef& stream);

}  // namespace heddle::client
