#include "cuda_target.h"
#include "software_target.h"
#include "target.h"

namespace heddle::conformance {

std::vector<TargetKind> targets() {
  return {{"Software", unpaced_software_target},
          {"SoftwarePaced", paced_software_target},
          {"SoftwareTimeSliced", time_sliced_software_target},
          {"SoftwareApart", unpaced_software_target, true},
          {"SoftwarePacedApart", paced_software_target, true},
          {"Cuda", cuda_target},
          {"CudaApart", cuda_target, true}};
}

}  // namespace heddle::conformance
