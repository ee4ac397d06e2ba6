#include "client/driver/array_format.h"

namespace heddle::client {
namespace {

struct Row {
  CUarray_format format;
  int bits;
  cudaChannelFormatKind kind;
};
constexpr Row kRows[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
    {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
    {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
    {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
};

}  // namespace

Answer<cudaChannelFormatDesc> channel_format(CUarray_format format, unsigned channels) {
  for (const Row& row : kRows) {
    if (row.format != format) continue;
    if (channels != 1 && channels != 2 && channels != 4) return refuse(cudaErrorInvalidValue);
    const auto bits = [&](unsigned channel) { return channel < channels ? row.bits : 0; };
    return cudaChannelFormatDesc{bits(0), bits(1), bits(2), bits(3), row.kind};
  }
  return refuse(cudaErrorInvalidValue,
                stringf("elements of CUarray_format 0x%x are not supported", static_cast<unsigned>(format)));
}

ArrayFormat array_format(const cudaChannelFormatDesc& description) {
  ArrayFormat found;
  for (const int bits : {description.x, description.y, description.z, description.w}) found.channels += bits > 0;
  for (const Row& row : kRows) {
    if (row.bits == description.x && row.kind == description.f) found.format = row.format;
  }
  return found;
}

}  // namespace heddle::client
