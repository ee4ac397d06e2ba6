// Errors: their names and texts, and the thread's last one.

#include "client/answer.h"

namespace heddle::client {
namespace {

struct ErrorText {
  const char *name, *text;
};

// A switch, so that two errors of one number would not compile.
ErrorText describe_error(int number) {
  switch (number) {
#define HEDDLE_CUDA_ERROR(value, name, text) \
  case value:                                \
    return {#name, text};
#include "client/cuda_errors.inc"
#undef HEDDLE_CUDA_ERROR
  }
  return {"unrecognized error code", "unrecognized error code"};
}

}  // namespace

HEDDLE_EXPORT const char* cudaGetErrorName(cudaError_t error) {
  return describe_error(error).name;
}

HEDDLE_EXPORT const char* cudaGetErrorString(cudaError_t error) {
  return describe_error(error).text;
}

HEDDLE_EXPORT cudaError_t cudaGetLastError() {
  return take_last_error();
}

HEDDLE_EXPORT cudaError_t cudaPeekAtLastError() {
  return last_error();
}

}  // namespace heddle::client
