#include "device/cuda/surface_copy.h"

#include <string>

namespace heddle::cuda {
namespace {

constexpr uint32_t kBlockWidth = 32, kBlockHeight = 8;

// As PTX names how the elements of a surface are found, and the operand that does: x in bytes.
struct Geometry {
  const char *name, *coordinates;
};
Geometry geometry_of(const Texture& of) {
  static constexpr Geometry kLine{"1d", "{%x}"}, kPlane{"2d", "{%x, %y}"}, kVolume{"3d", "{%x, %y, %z, %z}"},
      kLines{"a1d", "{%z, %x}"}, kPlanes{"a2d", "{%z, %x, %y, %y}"};
  switch (of.shape) {
    case TextureShape::k1D:
      return kLine;
    case TextureShape::k2D:
      return kPlane;
    case TextureShape::k3D:
      return kVolume;
    case TextureShape::k1DLayered:
      return kLines;
    default:
      return kPlanes;
  }
}

// An element as PTX moves it: type of surface and memory instructions, and the registers.
struct Element {
  const char *surface, *memory, *registers;
};
Element element_of(uint32_t bytes) {
  switch (bytes) {
    case 1:
      return {"b8", "u8", "%h"};
    case 2:
      return {"b16", "u16", "%h"};
    case 4:
      return {"b32", "u32", "%a"};
    case 8:
      return {"v2.b32", "v2.u32", "%a, %b"};
    default:
      return {"v4.b32", "v4.u32", "%a, %b, %c, %d"};
  }
}

// A thread an element: its place in the array is %x, %y, %z, in memory %at.
constexpr const char* kPlace = R"(
  .reg .pred %out; .reg .b16 %h; .reg .b32 %a, %b, %c, %d, %x, %y, %z, %width, %height, %first;
  .reg .b64 %array, %at, %pitch, %slice, %wide;
  ld.param.u64 %array, [array]; ld.param.u64 %at, [memory]; ld.param.u64 %pitch, [pitch]; ld.param.u64 %slice, [slice];
  ld.param.u32 %width, [width]; ld.param.u32 %height, [height]; ld.param.u32 %first, [first];
  mov.u32 %a, %ctaid.x; mov.u32 %b, %ntid.x; mov.u32 %c, %tid.x; mad.lo.u32 %x, %a, %b, %c;
  mov.u32 %a, %ctaid.y; mov.u32 %b, %ntid.y; mov.u32 %c, %tid.y; mad.lo.u32 %y, %a, %b, %c;
  mov.u32 %z, %ctaid.z; add.u32 %z, %z, %first;
  setp.ge.u32 %out, %x, %width; @%out ret;
  setp.ge.u32 %out, %y, %height; @%out ret;
  cvt.u64.u32 %wide, %y; mad.lo.u64 %at, %wide, %pitch, %at;
  cvt.u64.u32 %wide, %z; mad.lo.u64 %at, %wide, %slice, %at;
)";

std::string kernel(const char* name, const std::string& body) {
  return std::string(".visible .entry ") + name +
         "(.param .u64 array, .param .u64 memory, .param .u64 pitch, .param .u64 slice,"
         " .param .u32 width, .param .u32 height, .param .u32 first)\n{" +
         kPlace + body + "  ret;\n}\n";
}

std::string source_of(const Texture& of) {
  const auto [geometry, coordinates] = geometry_of(of);
  const auto [surface, memory, registers] = element_of(of.texel_bytes());
  const std::string place =
      stringf("  mul.lo.u32 %%x, %%x, %u; cvt.u64.u32 %%wide, %%x; add.u64 %%at, %%at, %%wide;\n", of.texel_bytes());
  const std::string value = std::string("{") + registers + "}";
  const bool vector = of.texel_bytes() > 4;
  const std::string in_memory = vector ? value : registers;
  const std::string to_array = stringf("  ld.global.%s %s, [%%at];\n  sust.b.%s.%s.trap [%%array, %s], %s;\n", memory,
                                       in_memory.c_str(), geometry, surface, coordinates, value.c_str());
  const std::string to_memory = stringf("  suld.b.%s.%s.trap %s, [%%array, %s];\n  st.global.%s [%%at], %s;\n",
                                        geometry, surface, value.c_str(), coordinates, memory, in_memory.c_str());
  return ".version 6.0\n.target sm_50\n.address_size 64\n" + kernel("to_array", place + to_array) +
         kernel("to_memory", place + to_memory);
}

}  // namespace

SurfaceCopy::~SurfaceCopy() {
  for (const auto& [of, kernels] : kernels_) {
    if (kernels.module) driver_.cuModuleUnload(kernels.module);
  }
}

CUresult SurfaceCopy::load(const Texture& of, Kernels& kernels) {
  CUresult result = driver_.cuModuleLoadData(&kernels.module, source_of(of).c_str());
  if (result == CUDA_SUCCESS) result = driver_.cuModuleGetFunction(&kernels.to_array, kernels.module, "to_array");
  if (result == CUDA_SUCCESS) result = driver_.cuModuleGetFunction(&kernels.to_memory, kernels.module, "to_memory");
  if (result == CUDA_SUCCESS) result = driver_.cuFuncLoad(kernels.to_array);
  return result == CUDA_SUCCESS ? driver_.cuFuncLoad(kernels.to_memory) : result;
}

CUresult SurfaceCopy::enqueue(CUstream stream, Direction direction, CUsurfObject array, const Texture& of,
                              uint32_t first, uint32_t slices) {
  Kernels& kernels = kernels_[{geometry_of(of).name, of.texel_bytes()}];
  if (!kernels.to_memory) {
    if (const CUresult loaded = load(of, kernels); loaded != CUDA_SUCCESS) return loaded;
  }
  CUsurfObject object = array;
  uint64_t memory = of.address, pitch = of.pitch, slice = of.slice;
  uint32_t width = of.width, height = of.height, begin = first;
  void* arguments[] = {&object, &memory, &pitch, &slice, &width, &height, &begin};
  const uint32_t columns = (width + kBlockWidth - 1) / kBlockWidth, rows = (height + kBlockHeight - 1) / kBlockHeight;
  return driver_.cuLaunchKernel(direction == Direction::kToArray ? kernels.to_array : kernels.to_memory, columns, rows,
                                slices, kBlockWidth, kBlockHeight, 1, 0, stream, arguments, nullptr);
}

}  // namespace heddle::cuda
