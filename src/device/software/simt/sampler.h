#pragma once

#include <array>
#include <cstdint>

#include "core/texture.h"
#include "device/software/simt/memory_map.h"

// What a fetch of a texture gives, as the CUDA C++ Programming Guide says it (appendix "Texture Fetching"): coordinates
// to elements by the addressing mode, the nearest element or a weighted sum of the 2, 4 or 8 around the place, with
// weights of 8 fraction bits. Pure; reads memory after asking the map.
namespace heddle::software {

// Four channels: f32, or integers extended to 32 bits. Channels that the format lacks are 0, the fourth one.
using Texel = std::array<uint32_t, 4>;

// A place in a texture. The third coordinate is used by 3D textures and cubes only; for cubes the three are a
// direction.
struct TexturePlace {
  float at[3] = {};
  uint32_t layer = 0;
};

class Sampler {
 public:
  // The texture passed check(). Both outlive the sampler.
  Sampler(const Texture& texture, const MemoryMap& memory) : texture_(texture), memory_(memory) {}

  Texel sample(const TexturePlace& place);
  // The element at whole coordinates, without filter (tex with .s32 coordinates).
  Texel element(const int32_t (&at)[3], uint32_t layer);
  // One channel of the four elements that a linear filter would mix, in the order of tld4.
  Texel gather(const TexturePlace& place, uint32_t channel);

  // The first address that may not be touched, of any call; 0: all was well.
  uint64_t bad_address() const { return bad_address_; }
  // Of the element that was read first.
  uint64_t first_address() const { return first_address_; }

 private:
  // One dimension of a filter's footprint: one or two elements (kOutside: the border), and the weight of the second.
  static constexpr int64_t kOutside = -1;
  struct Taps {
    int64_t index[2] = {0, kOutside};
    float weight = 0;
    uint32_t count = 1;
  };
  using Texels = std::array<float, 4>;

  Taps taps(uint32_t axis, float coordinate, bool linear) const;
  int64_t resolve(uint32_t axis, int64_t index) const;
  uint32_t size(uint32_t axis) const;
  uint32_t dimensions() const;
  AddressMode mode(uint32_t axis) const;
  bool reads_float() const;
  // Cubes: the face, and the place on it.
  TexturePlace on_face(const TexturePlace& place) const;
  uint32_t layer_of(uint32_t layer) const;
  Texel filter(const Taps (&axes)[3], uint32_t layer);
  Texel fetch(int64_t x, int64_t y, int64_t z, uint32_t layer);
  Texel decode(const std::byte* raw) const;
  uint32_t channel(const std::byte* raw, uint32_t c) const;

  const Texture& texture_;
  const MemoryMap& memory_;
  uint64_t bad_address_ = 0, first_address_ = 0;
};

}  // namespace heddle::software
