#pragma once

#include <cstdint>
#include <string>

#include "core/cuda_error.h"
#include "core/result.h"

namespace heddle::worker {

// Why a record is not executed: it becomes the session's sticky fault.
struct Refusal {
  uint32_t cuda_error = kCudaUnknown;
  std::string text;
  bool device_lost = false;  // the device itself has failed
};

template <class T>
using Checked = tl::expected<T, Refusal>;

// The record makes no sense: no client of ours writes such a thing, so this is a broken or hostile one.
[[gnu::format(printf, 1, 2)]] tl::unexpected<Refusal> malformed(const char* format, ...);
// The record makes sense, its argument does not.
[[gnu::format(printf, 2, 3)]] tl::unexpected<Refusal> refused(uint32_t cuda_error, const char* format, ...);

// What CUDA says where the device (or the loading of a module) says `error`; `what` names the operation.
Refusal refusal_of(const char* what, const Error& error);

}  // namespace heddle::worker
