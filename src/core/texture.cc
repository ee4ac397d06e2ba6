#include "core/texture.h"

#include <algorithm>
#include <bit>

#include "core/units.h"

namespace heddle {
namespace {

constexpr uint32_t kMostElements = 1u << 28;  // of a buffer; arrays end long before
constexpr uint64_t kMostBytes = 1ull << 46, kMostAddress = 1ull << 47;

bool is_channel_size(uint32_t value) {
  return value == 1 || value == 2 || value == 4;
}

Status check_texel(const Texture& t) {
  const bool possible = is_channel_size(t.channels) && is_channel_size(t.channel_bytes) &&
                        t.kind <= TexelKind::kFloat && !(t.kind == TexelKind::kFloat && t.channel_bytes == 1);
  if (possible) return {};
  return fail(ErrorCode::kInvalidArgument, "a texture of %u channels of %u bytes of kind %u: there is no such format",
              t.channels, t.channel_bytes, static_cast<unsigned>(t.kind));
}

// Which dimensions the shape has.
bool fits_shape(const Texture& t) {
  constexpr uint32_t kFaces = 6;
  switch (t.shape) {
    case TextureShape::k1D:
      return t.height == 1 && t.depth == 1;
    case TextureShape::k2D:
      return t.depth == 1;
    case TextureShape::k1DLayered:
      return t.height == 1;
    case TextureShape::k3D:
    case TextureShape::k2DLayered:
      return true;
    case TextureShape::kCube:
      return t.width == t.height && t.depth == kFaces;
    case TextureShape::kCubeLayered:
      return t.width == t.height && t.depth % kFaces == 0;
  }
  return false;
}

// Of one dimension: blocks are halved for as long as half of one would do.
uint64_t in_blocks(uint64_t size, uint64_t most) {
  return round_up(size, std::min<uint64_t>(std::bit_ceil(size), most));
}

}  // namespace

bool needs_image(const Texture& t) {
  constexpr uint64_t kMostWidth = 131072, kMostHeight = 65000, kMostPitch = 2097120;  // of planes in memory
  if (t.has(Texture::kBuffer)) return false;
  if (t.has(Texture::kSurface) || t.has(Texture::kGather) || t.shape != TextureShape::k2D) return true;
  return t.address % kTextureAlign != 0 || t.pitch % kTexturePitchAlign != 0 || t.width > kMostWidth ||
         t.height > kMostHeight || t.pitch > kMostPitch;
}

uint64_t image_bytes(const Texture& t) {
  constexpr uint64_t kBlockBytes = 64, kBlockRows = 128, kBlockSlices = 32, kStep = 2 * kMiB;
  const uint64_t row = round_up(uint64_t{t.width} * t.texel_bytes(), kBlockBytes);
  return round_up(row * in_blocks(std::max(t.height, 8u), kBlockRows) * in_blocks(t.depth, kBlockSlices), kStep);
}

Status check(const Texture& t) {
  HEDDLE_TRY(check_texel(t));
  const bool sampled = std::all_of(std::begin(t.modes), std::end(t.modes),
                                   [](AddressMode mode) { return mode <= AddressMode::kBorder; }) &&
                       (t.flags & ~Texture::kAllFlags) == 0;
  if (!sampled) return fail(ErrorCode::kInvalidArgument, "a texture with flags %#x or address modes unknown", t.flags);
  const uint64_t row = uint64_t{t.width} * t.texel_bytes();
  const bool sized = std::min({t.width, t.height, t.depth}) >= 1 &&
                     std::max({t.width, t.height, t.depth}) <= kMostElements && fits_shape(t) &&
                     t.pitch <= kMostBytes && t.slice <= kMostBytes && (t.height == 1 || t.pitch >= row) &&
                     (t.depth == 1 || t.slice / t.height >= t.pitch);
  uint64_t slices = 0, rows = 0, bytes = 0;
  const bool overflows = __builtin_mul_overflow(uint64_t{t.depth} - 1, t.slice, &slices) ||
                         __builtin_mul_overflow(uint64_t{t.height} - 1, t.pitch, &rows) ||
                         __builtin_add_overflow(slices, rows, &bytes) || __builtin_add_overflow(bytes, row, &bytes);
  if (sized && !overflows && bytes <= kMostBytes && t.address <= kMostAddress) return {};
  return fail(ErrorCode::kInvalidArgument,
              "a texture of shape %u, %u x %u x %u elements, pitch %llu, slice %llu at %#llx",
              static_cast<unsigned>(t.shape), t.width, t.height, t.depth, static_cast<unsigned long long>(t.pitch),
              static_cast<unsigned long long>(t.slice), static_cast<unsigned long long>(t.address));
}

}  // namespace heddle
