#pragma once

#include "client/cuda_types.h"
#include "core/result.h"

// How calls answer: CUDA's codes outside, Failure inside, and the two things that outlive a call: the thread's last
// error, and the lines that the runtime has to say on stderr.
namespace heddle::client {

// What the program is told of an error of those parts that know nothing of CUDA (session, arena, lazy task).
cudaError_t cuda_code(ErrorCode code);

// Error of this room: a CUDA code and what to tell the user. Empty text: nothing that the code does not say.
struct Failure {
  cudaError_t code = cudaErrorUnknown;
  std::string text;

  Failure() = default;
  Failure(cudaError_t of, std::string why) : code(of), text(std::move(why)) {}
  Failure(Error error) : code(cuda_code(error.code)), text(std::move(error.text)) {}
};
template <class T>
using Answer = tl::expected<T, Failure>;
using Done = Answer<void>;

inline tl::unexpected<Failure> refuse(cudaError_t code) {
  return tl::unexpected(Failure{code, {}});
}
inline tl::unexpected<Failure> refuse(cudaError_t code, std::string text) {
  return tl::unexpected(Failure{code, std::move(text)});
}

// Keeps `code` as the calling thread's last error where it is one, and returns it.
cudaError_t remember(cudaError_t code);
// cudaGetLastError and cudaPeekAtLastError.
cudaError_t take_last_error();
cudaError_t last_error();

// While it lives, nothing becomes the thread's last error: for calls that are none of the runtime's.
class LastErrorKept {
 public:
  LastErrorKept() : before_(last_error()) {}
  ~LastErrorKept() {
    take_last_error();
    remember(before_);
  }
  LastErrorKept(const LastErrorKept&) = delete;
  LastErrorKept& operator=(const LastErrorKept&) = delete;

 private:
  const cudaError_t before_;
};

// One line on stderr, "heddle: ...". The same text is said once in the life of the process.
void say_once(const std::string& text);
// The same for "heddle: <function> is not supported".
cudaError_t unsupported(const char* function);

// Ends every exported call: says what has to be said, remembers the code.
cudaError_t finish(const Failure& failure);

// Runs the body of an exported call. Nothing that it throws (allocation) gets out.
template <class Body>
cudaError_t answer(Body&& body) noexcept {
  try {
    const auto result = body();
    if (result) [[likely]]
      return cudaSuccess;
    return finish(result.error());
  } catch (...) {
    return remember(cudaErrorMemoryAllocation);
  }
}

// Returns early with the failure of an expression of type Answer or Done, Result or Status.
#define HEDDLE_ANSWER(expression)                                       \
  do {                                                                  \
    if (auto heddle_answer = (expression); !heddle_answer) [[unlikely]] \
      return tl::unexpected(std::move(heddle_answer).error());          \
  } while (false)

}  // namespace heddle::client

// Marks the functions that tenants see.
#define HEDDLE_EXPORT extern "C" __attribute__((visibility("default")))
