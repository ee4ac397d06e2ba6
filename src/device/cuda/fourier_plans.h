#pragma once

#include <cuda.h>

#include <list>
#include <optional>

#include "library/cufft.h"

namespace heddle::cuda {

// Plans of NVIDIA's cuFFT: one for each transform that a program calls, by all that makes the plan. The program
// allocates work areas (library::cufft::Function::kSize says how large), so that they are charged to it; each call says
// which, as it says the stream, so that plans of the program's that are made alike share one here.
//
// Thread safety: none, as Libraries.
class FourierPlans {
 public:
  // `library` is cuFFT's.
  Status call(void* library, const library::Call& call, CUstream stream);
  // As Libraries::written_on_host().
  static std::optional<library::Operand> written_on_host(const library::Call& call);

 private:
  // Those that were used last are kept: a program that goes through many sizes would fill the device with tables.
  static constexpr size_t kMost = 64;
  struct Plan {
    library::cufft::Transform transform;  // without addresses and direction
    int handle = 0;
    uint64_t work_bytes = 0;
  };

  // The latest stands first. A status of cuFFT's in the error where it refuses the plan.
  Result<Plan*> plan_of(void* library, const library::cufft::Transform& transform);
  Status execute(void* library, library::cufft::Function function, const library::cufft::Transform& transform,
                 CUstream stream);
  void tell_size(void* library, const library::cufft::Transform& transform);

  std::list<Plan> plans_;
  int refused_ = 0;  // cufftResult of the last plan that cuFFT refused
};

}  // namespace heddle::cuda
