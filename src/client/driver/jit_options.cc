#include "client/driver/jit_options.h"

#include <algorithm>
#include <cstring>

namespace heddle::client {
namespace {

enum Option : int { kInfoLog = 3, kInfoLogBytes = 4, kErrorLog = 5, kErrorLogBytes = 6 };

}  // namespace

JitLogs::JitLogs(unsigned count, const int* options, void** values) {
  for (unsigned i = 0; options && values && i < count; ++i) {
    if (options[i] == kInfoLog) info_.text = static_cast<char*>(values[i]);
    if (options[i] == kInfoLogBytes) info_.bytes = &values[i];
    if (options[i] == kErrorLog) error_.text = static_cast<char*>(values[i]);
    if (options[i] == kErrorLogBytes) error_.bytes = &values[i];
  }
}

void JitLogs::put(const Log& log, const char* text) {
  if (!log.bytes) return;
  const auto space = static_cast<size_t>(reinterpret_cast<uintptr_t>(*log.bytes));
  size_t written = 0;
  if (log.text && space > 0) {
    written = std::min(space - 1, std::strlen(text));
    std::memcpy(log.text, text, written);
    log.text[written] = '\0';
  }
  *log.bytes = reinterpret_cast<void*>(written);
}

void JitLogs::write(const char* error) const {
  put(info_, "");
  put(error_, error ? error : "");
}

}  // namespace heddle::client
