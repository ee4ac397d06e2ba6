// What needs no context: the beginning, versions, errors, profiling.

#include "client/driver/functions.h"
#include "client/driver/proc_address.h"
#include "client/driver/runtime_functions.h"
#include "client/runtime.h"

namespace heddle::client {
namespace {

struct ErrorText {
  const char *name, *text;
};

// A switch, so that two errors of one number would not compile.
ErrorText describe_error(int number) {
  switch (number) {
#define HEDDLE_DRIVER_ERROR(value, name, text) \
  case value:                                  \
    return {#name, text};
#include "client/driver/driver_errors.inc"
#undef HEDDLE_DRIVER_ERROR
  }
  return {nullptr, nullptr};
}

CUresult error_name(int error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = describe_error(error).name;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult error_string(int error, const char** text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = describe_error(error).text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult init(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return driver_answer(Needs::kNothing, []() -> Done {
    if (auto session = runtime().session(); !session) return tl::unexpected(std::move(session).error());
    driver_is_initialized();
    return {};
  });
}

}  // namespace

std::span<const DriverFunction> driver_general_functions() {
  static const DriverFunction rows[] = {
      HEDDLE_DRIVER(cuInit, 2000, init),
      HEDDLE_DRIVER(cuDriverGetVersion, 2020, Same<&cudaDriverGetVersion, Needs::kNothing>::call),
      HEDDLE_DRIVER(cuGetErrorName, 6000, error_name),
      HEDDLE_DRIVER(cuGetErrorString, 6000, error_string),
      HEDDLE_DRIVER(cuGetProcAddress, 11030, proc_address_v1),
      HEDDLE_DRIVER(cuGetProcAddress_v2, 12000, proc_address),
      HEDDLE_DRIVER(cuProfilerStart, 4000, SameAnywhere<&cudaProfilerStart>::call),
      HEDDLE_DRIVER(cuProfilerStop, 4000, SameAnywhere<&cudaProfilerStop>::call),
  };
  return rows;
}

}  // namespace heddle::client
