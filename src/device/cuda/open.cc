#include "device/cuda/context.h"

namespace heddle::device {

Result<std::unique_ptr<Context>> open_cuda_context(const ContextOptions& options) {
  auto context = cuda::CudaContext::open(options);
  if (!context) return tl::unexpected(context.error());
  return std::move(*context);
}

}  // namespace heddle::device
