#include <cuda_runtime_api.h>

#include "program.h"

#ifdef cudaThreadSynchronize /* heddle cc's own mapping; another compiler has none */
#undef cudaThreadSynchronize
#endif
cudaError_t cudaThreadSynchronize(void);

int old_call(void) {
  return cudaThreadSynchronize() == cudaErrorInvalidValue;
}
