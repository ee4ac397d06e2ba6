#include "image/device_runtime.h"

namespace heddle::image {
namespace {

constexpr std::string_view kSetConditional = "cudaGraphSetConditional";

constexpr std::string_view kSource = R"(
.version 6.3
.target sm_52
.address_size 64
.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [value];
  st.u32 [%rd1], %r1;
  ret;
}
)";

}  // namespace

bool in_device_runtime(std::string_view name) {
  return name == kSetConditional;
}

bool names_device_runtime(std::string_view ptx) {
  return ptx.find(kSetConditional) != std::string_view::npos;
}

std::string_view device_runtime_ptx() {
  return kSource;
}

}  // namespace heddle::image
