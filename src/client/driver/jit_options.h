#pragma once

#include "client/driver/driver_types.h"

namespace heddle::client {

// The options of cuModuleLoadDataEx and the linker. Only the logs have a meaning here: PTX is compiled, or interpreted,
// where the worker's device is.
class JitLogs {
 public:
  JitLogs(unsigned count, const int* options, void** values);
  // Writes what went wrong, cut to the program's buffer, and how long it is; null: nothing did.
  void write(const char* error) const;

 private:
  struct Log {
    char* text = nullptr;
    void** bytes = nullptr;  // in: the buffer's, out: what was written
  };
  static void put(const Log& log, const char* text);

  Log info_, error_;
};

}  // namespace heddle::client
