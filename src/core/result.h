#pragma once

#include <string>
#include <tl/expected.hpp>

namespace heddle {

// What kind of failure it was: enough for a caller to decide what to do. The text is for people.
enum class ErrorCode : unsigned {
  kInvalidArgument = 1,  // the caller asked for something that makes no sense
  kNotFound,             // no object of that name or id
  kOutOfMemory,          // memory that is accounted for (device, pinned, swap) is not to be had
  kLimitExceeded,        // a configured or fixed limit stands in the way
  kNotSupported,         // heddle does not do this; the text names it
  kPermission,           // the peer may not do this
  kProtocol,             // a peer sent something malformed or out of turn
  kPeerDied,             // the process at the other end is gone
  kTimeout,              // it did not happen in time
  kCancelled,            // somebody asked for it to stop
  kCorrupt,              // data that was read back does not make sense
  kDeviceFault,          // the device reported a fault; `device_status` in the text
  kSystem,               // a system call failed; the text ends with strerror
  kInternal,             // a bug in heddle
};

const char* error_code_name(ErrorCode code);

// An expected failure. `text` names the object, the limit and the value seen, and what to do where that is known.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// Both build an Error from a printf format. They use no fmt: the client runtime, which may not load it, needs them too.
[[gnu::format(printf, 2, 3)]] tl::unexpected<Error> fail(ErrorCode code, const char* format, ...);
// Appends ": " and the text of `errno_value` (errno where it is negative).
[[gnu::format(printf, 2, 3)]] tl::unexpected<Error> fail_errno(int errno_value, const char* format, ...);

// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string stringf(const char* format, ...);

// Returns early with the error of an expression of type Status or Result.
#define HEDDLE_TRY(expression)                                     \
  do {                                                             \
    if (auto heddle_try_result = (expression); !heddle_try_result) \
      return tl::unexpected(std::move(heddle_try_result).error()); \
  } while (false)

}  // namespace heddle
