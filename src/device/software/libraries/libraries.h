#pragma once

#include <optional>

#include "device/software/libraries/openblas.h"
#include "device/software/memory.h"
#include "device/software/operation.h"
#include "library/call.h"

namespace heddle::software {

// The libraries of one context: OpenBLAS for cuBLAS, heddle's own generators for cuRAND and transforms for cuFFT.
//
// Thread safety: open() from one thread at a time; run() from any thread, for what was open before.
class Libraries {
 public:
  explicit Libraries(uint32_t threads) : threads_(threads) {}

  // As device::Context::open_library().
  Result<uint32_t> open(library::Library library);
  // Checks the operands and carries the call out. Returns what is wrong, and then nothing has been written.
  std::optional<Problem> run(const library::Call& call, const library::Demand& demand,
                             const DeviceMemory& memory) const;

 private:
  const uint32_t threads_;
  std::optional<Openblas> blas_;
};

}  // namespace heddle::software
