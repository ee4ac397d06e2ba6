// The control socket under a fuzzer: whatever two programs send, heddled lives and its books come out even.

#include "daemon/testing/control_case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static heddle::daemon::testing::ControlCase control;
  control.run({data, size});
  return 0;
}
