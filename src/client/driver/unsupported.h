#pragma once

#include "client/driver/functions.h"

// For the table that the build makes of the functions that cuda_exports.txt says are not supported.
namespace heddle::client {

// A name with a form (cuStreamBatchMemOp_v2) is meant by no version without it: the first form answers the same.
constexpr int since_of(std::string_view name) {
  return name.size() > 3 && name[name.size() - 3] == '_' && name[name.size() - 2] == 'v' ? 0 : 1;
}

#define HEDDLE_UNSUPPORTED(name)                                                                             \
  {                                                                                                          \
#name, since_of(#name), as_entry(+[]() noexcept { return driver_unsupported(#name); }), nullptr, nullptr \
  }

}  // namespace heddle::client
