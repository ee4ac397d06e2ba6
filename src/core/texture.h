#pragma once

#include <cstdint>

#include "core/result.h"

// What a texture object or a surface object is made of: elements in device memory and the way they are read. Plain
// data; it crosses process boundaries as it stands, so what a tenant wrote goes through check() first.
namespace heddle {

enum class TexelKind : uint8_t { kSigned, kUnsigned, kFloat };
// CUDA's numbers.
enum class AddressMode : uint8_t { kWrap, kClamp, kMirror, kBorder };
enum class TextureShape : uint8_t { k1D, k2D, k3D, k1DLayered, k2DLayered, kCube, kCubeLayered };

struct Texture {
  // Flags.
  static constexpr uint32_t kSurface = 1;                // a surface object: raw bytes, may be written
  static constexpr uint32_t kBuffer = 2;                 // cudaResourceTypeLinear: read by index, zero outside
  static constexpr uint32_t kLinearFilter = 4;           // else the nearest element
  static constexpr uint32_t kNormalizedCoordinates = 8;  // 0 to 1 over each dimension
  static constexpr uint32_t kNormalizedValues = 16;      // integers of 8 and 16 bits are read as 0 to 1, or -1 to 1
  static constexpr uint32_t kSrgb = 32;                  // the first three channels of 8 bits are sRGB
  static constexpr uint32_t kGather = 64;                // of an array that four texels at once may be fetched from
  static constexpr uint32_t kAllFlags = 127;

  uint64_t address = 0;                       // of the first element
  uint64_t pitch = 0, slice = 0;              // bytes from row to row, and from layer, face or slice to the next
  uint32_t width = 1, height = 1, depth = 1;  // in elements; depth counts layers and faces, too
  uint32_t flags = 0;
  TextureShape shape = TextureShape::k1D;
  TexelKind kind = TexelKind::kFloat;
  uint8_t channels = 1, channel_bytes = 4;  // 1, 2 or 4 of each
  AddressMode modes[3] = {AddressMode::kClamp, AddressMode::kClamp, AddressMode::kClamp};
  uint8_t reserved = 0;
  uint32_t border[4] = {};  // bits of what lies outside, where the mode is kBorder

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  uint32_t texel_bytes() const { return uint32_t{channels} * channel_bytes; }
  // From the first byte of the first element to the last of the last. Of one that passed check() only.
  uint64_t bytes() const { return (depth - 1) * slice + (height - 1) * pitch + uint64_t{width} * texel_bytes(); }
  bool operator==(const Texture&) const = default;
};

// Objects are numbered from the first on, upwards in steps (device.h): the numbers below are left to a GPU's driver,
// and those in between to devices. A GPU has numbers up to 2^20.
inline constexpr uint32_t kFirstTextureNumber = 64, kTextureNumberStep = 2, kEndOfTextureNumbers = 1u << 20;

// What CUDA wants of memory that a texture is bound to, in bytes: attributes TextureAlignment, TexturePitchAlignment.
inline constexpr uint64_t kTextureAlign = 512, kTexturePitchAlign = 32;

// Whether a GPU cannot read it where it lies, in rows, but needs a copy in a CUDA array: surfaces, and every shape but
// buffers and suitably aligned planes.
bool needs_image(const Texture& texture);
// The most device memory that such a copy takes. Blocks of a CUDA array are at most 64 bytes by 128 rows by 32 slices,
// and it is aligned to 64 KiB (seen on H200); allocators give out 2 MiB at a time. Of one that passed check() only.
uint64_t image_bytes(const Texture& texture);

// Whether it makes sense: values within their ranges, no dimension that the shape does not have, rows and slices that
// do not overlap, addresses that do not overflow. Nothing about whether memory is there.
Status check(const Texture& texture);

}  // namespace heddle
