// In a build without NVIDIA's header: there are no CUDA devices.

#include "device/device.h"

namespace heddle::device {

Result<std::unique_ptr<Context>> open_cuda_context(const ContextOptions&) {
  return fail(ErrorCode::kNotSupported,
              "this heddle was built without cuda.h: install the CUDA toolkit and build again");
}

}  // namespace heddle::device
