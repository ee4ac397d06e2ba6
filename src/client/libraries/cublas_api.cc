// libcublas.so.13: cuBLAS's functions, forwarded to the worker. The table (library/cublas_functions.h) makes those that
// calculate; here are the others (cublas.h's forms without a handle are in cublas_old_api.cc). What NVIDIA's library
// has beyond them answers CUBLAS_STATUS_NOT_SUPPORTED; the build makes those out of cublas_exports.txt.
//
// As all that runs in tenants: no exception leaves a function, nothing ends the process, nothing is done at exit.

#include <cstdio>

#include "client/libraries/cublas_entry.h"

namespace heddle::client {
namespace {

using namespace library::cublas::kinds;  // NOLINT(google-build-using-namespace): the table's words
using library::cublas::Number;

constexpr int kVersion = 130000;  // whose interface this is

// `body(handle)`, guarded, where the handle is one.
template <class Body>
int on_handle(void* handle, Body&& body) noexcept {
  return answer([&] {
    auto* const known = static_cast<CublasHandle*>(handle);
    if (!known || !known->valid()) return Outcome::kNotInitialized;
    const std::lock_guard lock(known->mutex);
    return body(*known);
  });
}

template <class Value, class Given>
Outcome tell(Given* to, Value value) {
  if (!to) return Outcome::kInvalidValue;
  *to = static_cast<Given>(value);
  return Outcome::kSuccess;
}

// Copies between host and device that need no handle. Steps of vectors count elements.
Outcome copy_elements(int64_t rows, int64_t columns, int64_t element, const void* from, int64_t from_step, void* to,
                      int64_t to_step, void* stream, bool blocking) {
  if (rows < 0 || columns < 0 || element <= 0 || from_step <= 0 || to_step <= 0) return Outcome::kInvalidValue;
  if (rows == 0 || columns == 0) return Outcome::kSuccess;
  if (from_step < rows || to_step < rows) return Outcome::kInvalidValue;
  const heddle_library_functions* const runtime = library_runtime();
  if (!runtime) return Outcome::kNotInitialized;
  const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * element); };
  const int error = runtime->copy(to, bytes(to_step), from, bytes(from_step), bytes(rows), static_cast<size_t>(columns),
                                  stream, blocking);
  return error == 0 ? Outcome::kSuccess : error == 1 ? Outcome::kInvalidValue : Outcome::kMappingError;
}

}  // namespace

// ---- Handles and their settings ----

HEDDLE_LIBRARY_EXPORT int cublasCreate_v2(void** handle) {
  return answer([&] {
    if (!handle) return Outcome::kInvalidValue;
    *handle = nullptr;
    const heddle_library_functions* const runtime = library_runtime();
    int device, capability;
    if (!runtime || runtime->current_device(&device, &capability) != 0) return Outcome::kNotInitialized;
    *handle = new CublasHandle(*runtime);
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasDestroy_v2(void* handle) {
  return answer([&] {
    auto* const known = static_cast<CublasHandle*>(handle);
    if (!known || !known->valid()) return Outcome::kNotInitialized;
    known->release();
    delete known;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasGetVersion_v2(void*, int* version) {
  return static_cast<int>(tell(version, kVersion));
}

HEDDLE_LIBRARY_EXPORT int cublasGetProperty(int property, int* value) {
  constexpr int kParts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  if (property < 0 || property > 2) return static_cast<int>(Outcome::kInvalidValue);
  return static_cast<int>(tell(value, kParts[property]));
}

HEDDLE_LIBRARY_EXPORT size_t cublasGetCudartVersion() {
  return 13000;
}

// As NVIDIA's: the workspace that was set for another stream is not used any more.
HEDDLE_LIBRARY_EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  return on_handle(handle, [&](CublasHandle& of) {
    of.stream = stream;
    of.forget_workspace();
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasGetStream_v2(void* handle, void** stream) {
  return on_handle(handle, [&](CublasHandle& of) {
    if (!stream) return Outcome::kInvalidValue;
    *stream = of.stream;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) {
  return on_handle(handle, [&](CublasHandle& of) {
    if (!workspace && bytes > 0) return Outcome::kInvalidValue;
    if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) return Outcome::kInvalidValue;
    of.set_workspace(workspace, bytes);
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasSetPointerMode_v2(void* handle, int mode) {
  return on_handle(handle, [&](CublasHandle& of) {
    if (mode != 0 && mode != 1) return Outcome::kInvalidValue;
    of.scalars_on_device = mode == 1;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasGetPointerMode_v2(void* handle, int* mode) {
  return on_handle(handle, [&](CublasHandle& of) { return tell(mode, of.scalars_on_device); });
}

HEDDLE_LIBRARY_EXPORT int cublasSetAtomicsMode(void* handle, int mode) {
  return on_handle(handle, [&](CublasHandle& of) {
    if (mode != 0 && mode != 1) return Outcome::kInvalidValue;
    of.atomics = mode == 1;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasGetAtomicsMode(void* handle, int* mode) {
  return on_handle(handle, [&](CublasHandle& of) { return tell(mode, of.atomics); });
}

HEDDLE_LIBRARY_EXPORT int cublasSetMathMode(void* handle, int mode) {
  return on_handle(handle, [&](CublasHandle& of) {
    of.math_mode = mode;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasGetMathMode(void* handle, int* mode) {
  return on_handle(handle, [&](CublasHandle& of) { return tell(mode, of.math_mode); });
}

// Remembered only: how many SMs a call may use is the scheduler's to say.
HEDDLE_LIBRARY_EXPORT int cublasSetSmCountTarget(void* handle, int count) {
  return on_handle(handle, [&](CublasHandle& of) {
    if (count < 0) return Outcome::kInvalidValue;
    of.sm_count_target = count;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cublasGetSmCountTarget(void* handle, int* count) {
  return on_handle(handle, [&](CublasHandle& of) { return tell(count, of.sm_count_target); });
}

// ---- What statuses are called ----

namespace {

struct StatusName {
  int status;
  const char *name, *text;
};
constexpr StatusName kStatusNames[] = {
    {0, "CUBLAS_STATUS_SUCCESS", "success"},
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library is not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", "memory could not be allocated"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", "an argument has no possible value"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks what the function needs"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", "device memory could not be accessed"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed on the device"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the function or its arguments are not supported"},
    {16, "CUBLAS_STATUS_LICENSE_ERROR", "a license is missing"},
};

const StatusName* status_name(int status) {
  for (const StatusName& each : kStatusNames) {
    if (each.status == status) return &each;
  }
  return nullptr;
}

}  // namespace

HEDDLE_LIBRARY_EXPORT const char* cublasGetStatusName(int status) {
  const StatusName* const known = status_name(status);
  return known ? known->name : "CUBLAS_STATUS_UNKNOWN";
}

HEDDLE_LIBRARY_EXPORT const char* cublasGetStatusString(int status) {
  const StatusName* const known = status_name(status);
  return known ? known->text : "unknown status";
}

// What BLAS has for a routine that finds an argument wrong; heddle's routines do not call it.
HEDDLE_LIBRARY_EXPORT void cublasXerbla(const char* routine, int argument) {
  std::fprintf(stderr, "%s: argument %d has an illegal value\n", routine ? routine : "?", argument);
}

// There is no log: what a call has to say of heddle it says on stderr.
HEDDLE_LIBRARY_EXPORT int cublasLoggerConfigure(int, int, int, const char*) {
  return 0;
}

HEDDLE_LIBRARY_EXPORT int cublasSetLoggerCallback(void*) {
  return 0;
}

HEDDLE_LIBRARY_EXPORT int cublasGetLoggerCallback(void** callback) {
  if (callback) *callback = nullptr;
  return static_cast<int>(callback ? Outcome::kSuccess : Outcome::kInvalidValue);
}

// ---- Copies ----

// A vector is a matrix of rows of one element.
// NOLINTBEGIN(cppcoreguidelines-macro-usage): each in two widths, to the device and from it.
#define HEDDLE_COPIES(Direction, suffix, Integer)                                                                   \
  HEDDLE_LIBRARY_EXPORT int cublas##Direction##Vector##suffix(Integer n, Integer element, const void* from,         \
                                                              Integer from_step, void* to, Integer to_step) {       \
    return answer([&] { return copy_elements(1, n, element, from, from_step, to, to_step, nullptr, true); });       \
  }                                                                                                                 \
  HEDDLE_LIBRARY_EXPORT int cublas##Direction##VectorAsync##suffix(                                                 \
      Integer n, Integer element, const void* from, Integer from_step, void* to, Integer to_step, void* stream) {   \
    return answer([&] { return copy_elements(1, n, element, from, from_step, to, to_step, stream, false); });       \
  }                                                                                                                 \
  HEDDLE_LIBRARY_EXPORT int cublas##Direction##Matrix##suffix(                                                      \
      Integer rows, Integer columns, Integer element, const void* from, Integer from_ld, void* to, Integer to_ld) { \
    return answer([&] { return copy_elements(rows, columns, element, from, from_ld, to, to_ld, nullptr, true); });  \
  }                                                                                                                 \
  HEDDLE_LIBRARY_EXPORT int cublas##Direction##MatrixAsync##suffix(Integer rows, Integer columns, Integer element,  \
                                                                   const void* from, Integer from_ld, void* to,     \
                                                                   Integer to_ld, void* stream) {                   \
    return answer([&] { return copy_elements(rows, columns, element, from, from_ld, to, to_ld, stream, false); });  \
  }
HEDDLE_COPIES(Set, , int)
HEDDLE_COPIES(Set, _64, int64_t)
HEDDLE_COPIES(Get, , int)
HEDDLE_COPIES(Get, _64, int64_t)

// ---- The table's functions ----

#define HEDDLE_SINGLE(name, element, shape, blas, ...)                                        \
  HEDDLE_LIBRARY_EXPORT int cublas##name(void* handle, HEDDLE_PARAMETERS(int, __VA_ARGS__)) { \
    return enter<int, __VA_ARGS__>(Number::name, handle, HEDDLE_ARGUMENTS(__VA_ARGS__));      \
  }
#define HEDDLE_TWIN(name, element, shape, blas, ...)                                                   \
  HEDDLE_SINGLE(name, element, shape, blas, __VA_ARGS__)                                               \
  HEDDLE_LIBRARY_EXPORT int cublas##name##_64(void* handle, HEDDLE_PARAMETERS(int64_t, __VA_ARGS__)) { \
    return enter<int64_t, __VA_ARGS__>(Number::name, handle, HEDDLE_ARGUMENTS(__VA_ARGS__));           \
  }
#define HEDDLE_OLD(old, name, ...) HEDDLE_TWIN(name, __VA_ARGS__)
#define HEDDLE_OLD_ANSWER(old, name, element, shape, blas, answer, ...) \
  HEDDLE_TWIN(name, element, shape, blas, __VA_ARGS__, answer)
HEDDLE_CUBLAS_FUNCTIONS(HEDDLE_TWIN, HEDDLE_SINGLE, HEDDLE_OLD, HEDDLE_OLD_ANSWER)
// NOLINTEND(cppcoreguidelines-macro-usage)

}  // namespace heddle::client
