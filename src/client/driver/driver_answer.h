#pragma once

#include <type_traits>

#include "client/answer.h"
#include "client/context.h"
#include "client/driver/driver_types.h"
#include "client/thread_place.h"

// How functions of the driver API answer. What they do is the runtime's: their bodies call its functions, or what those
// are made of, and the codes are translated here. None of them changes the runtime's last error.
namespace heddle::client {

// The driver's code for one of the runtime's. Nearly all have the same number.
CUresult driver_code(cudaError_t code);

// What a call needs before its body may run.
enum class Needs {
  kNothing,
  kDriver,   // cuInit, or a call of the runtime: else CUDA_ERROR_NOT_INITIALIZED
  kContext,  // a current context: else CUDA_ERROR_INVALID_CONTEXT, or CUDA_ERROR_CONTEXT_IS_DESTROYED
};
CUresult check_needs(Needs needs);
// The same as a failure, where a body finds out that it needs a context.
Done needs_context();
// cuInit has succeeded.
void driver_is_initialized();

// Says the failure's text, once, and gives the code.
CUresult driver_finish(const Failure& failure);

// Runs the body of a function: it returns a CUresult, the runtime's code, or an Answer. Nothing that it throws
// (allocation) gets out.
template <class Body>
CUresult driver_answer(Needs needs, Body&& body) noexcept {
  try {
    if (const CUresult missing = check_needs(needs); missing != CUDA_SUCCESS) [[unlikely]]
      return missing;
    using Returned = decltype(body());
    if constexpr (std::is_same_v<Returned, CUresult>) {
      return body();
    } else if constexpr (std::is_same_v<Returned, cudaError_t>) {
      const LastErrorKept kept;
      return driver_code(body());
    } else {
      const auto done = body();
      return done ? CUDA_SUCCESS : driver_finish(done.error());
    }
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}
template <class Body>
CUresult in_context(Body&& body) noexcept {
  return driver_answer(Needs::kContext, std::forward<Body>(body));
}
template <class Body>
CUresult in_driver(Body&& body) noexcept {
  return driver_answer(Needs::kDriver, std::forward<Body>(body));
}

// As unsupported() of the runtime: CUDA_ERROR_NOT_SUPPORTED, and one line that names the function.
CUresult driver_unsupported(const char* function) noexcept;

}  // namespace heddle::client
