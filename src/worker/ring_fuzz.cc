// libFuzzer's entry: see ring_case.h.

#include <cstddef>
#include <cstdint>

#include "worker/testing/ring_case.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::worker::run_ring_case({reinterpret_cast<const char*>(data), size});
  return 0;
}
