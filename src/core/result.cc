#include "core/result.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace heddle {
namespace {

std::string vstringf(const char* format, va_list arguments) {
  va_list measure;
  va_copy(measure, arguments);
  const int length = vsnprintf(nullptr, 0, format, measure);
  va_end(measure);
  if (length <= 0) return {};
  std::string text(static_cast<size_t>(length), '\0');
  vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

}  // namespace

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kLimitExceeded:
      return "limit exceeded";
    case ErrorCode::kNotSupported:
      return "not supported";
    case ErrorCode::kPermission:
      return "not permitted";
    case ErrorCode::kProtocol:
      return "protocol violation";
    case ErrorCode::kPeerDied:
      return "peer died";
    case ErrorCode::kTimeout:
      return "timed out";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kDeviceFault:
      return "device fault";
    case ErrorCode::kSystem:
      return "system error";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

std::string stringf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = vstringf(format, arguments);
  va_end(arguments);
  return text;
}

tl::unexpected<Error> fail(ErrorCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Error error{code, vstringf(format, arguments)};
  va_end(arguments);
  return tl::unexpected(std::move(error));
}

tl::unexpected<Error> fail_errno(int errno_value, const char* format, ...) {
  const int saved = errno_value < 0 ? errno : errno_value;
  va_list arguments;
  va_start(arguments, format);
  Error error{ErrorCode::kSystem, vstringf(format, arguments)};
  va_end(arguments);
  error.text += ": ";
  error.text += std::strerror(saved);
  return tl::unexpected(std::move(error));
}

}  // namespace heddle
