#include "driver/Advice.h"

#include <algorithm>

namespace heddle::compiler {
namespace {

struct Entry {
  const char *Sign; // in the output
  const char *Text;
};

constexpr const char *Textures =
    "texture references left CUDA with version 12, and no compiler for it has them: the program needs texture objects "
    "(cudaCreateTextureObject), or plain pointers where it only used tex1Dfetch";
constexpr const char *Properties =
    "CUDA 13 took fields out of cudaDeviceProp: cudaDeviceGetAttribute still tells them (cudaDevAttrClockRate, "
    "cudaDevAttrMemoryClockRate, cudaDevAttrComputeMode, cudaDevAttrKernelExecTimeout, cudaDevAttrGpuOverlap)";
constexpr const char *Samples =
    "that header belongs to NVIDIA's CUDA samples (Common/ in github.com/NVIDIA/cuda-samples): add its directory by -I";
constexpr const char *OldSamples =
    "that header belonged to the CUDA SDK until version 4.2: helper_cuda.h of NVIDIA's CUDA samples took its place";
constexpr const char *OpenMp = "OpenMP of clang 19 is a package of its own: install libomp-19-dev";
constexpr const char *OpenMpLink =
    "objects with OpenMP that heddle cc compiled are linked by heddle cc with -Xcompiler -fopenmp, or with -lomp";
constexpr const char *Warp =
    "the warp functions without _sync left CUDA for all architectures that this toolkit knows: "
    "__shfl_sync and its like take their place";
constexpr const char *Location =
    "CUDA 13 takes a cudaMemLocation where cudaMemPrefetchAsync and cudaMemAdvise took a device number";
constexpr const char *Launches =
    "cudaConfigureCall, cudaSetupArgument and cudaLaunch left CUDA with version 10: <<<...>>> or cudaLaunchKernel";
constexpr const char *Multi =
    "cudaLaunchCooperativeKernelMultiDevice left CUDA with version 13, and nothing takes its place";
constexpr const char *Driver =
    "no libcuda.so to link with: LIBRARY_PATH=CUDA/lib64/stubs, the toolkit's stand-in, as with plain nvcc";

constexpr Entry Entries[] = {
    {"texture is not a template", Textures},
    {"\"cudaBindTexture", Textures},
    {"\"cudaUnbindTexture\"", Textures},
    {"\"textureReference\"", Textures},
    {"\"cudaDeviceProp\" has no member", Properties},
    {"helper_cuda.h", Samples},
    {"helper_functions.h", Samples},
    {"helper_timer.h", Samples},
    {"helper_string.h", Samples},
    {"helper_math.h", Samples},
    {"cutil.h", OldSamples},
    {"cutil_inline.h", OldSamples},
    {"'omp.h' file not found", OpenMp},
    {"cannot find -lomp", OpenMp},
    {"undefined reference to `__kmpc_", OpenMpLink},
    {"identifier \"__shfl", Warp},
    {"identifier \"__ballot\"", Warp},
    {"identifier \"__any\"", Warp},
    {"identifier \"__all\"", Warp},
    {"\"cudaMemLocation\"", Location},
    {"\"cudaConfigureCall\"", Launches},
    {"\"cudaSetupArgument\"", Launches},
    {"\"cudaLaunchCooperativeKernelMultiDevice\"", Multi},
    {"cannot find -lcuda:", Driver},
};

} // namespace

std::vector<std::string> adviceFor(const std::string &Errors) {
  std::vector<std::string> Advice;
  for (const Entry &E : Entries) {
    const bool Seen = Errors.find(E.Sign) != std::string::npos;
    if (Seen && std::find(Advice.begin(), Advice.end(), E.Text) == Advice.end())
      Advice.emplace_back(E.Text);
  }
  return Advice;
}

} // namespace heddle::compiler
