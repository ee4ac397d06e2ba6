#pragma once

#include <cstdint>

namespace heddle::software {

// The state space of an access, and with it how an address is formed and what it may reach.
enum class At : uint8_t { kGlobal, kShared, kLocal, kParameter, kGeneric };

}  // namespace heddle::software
