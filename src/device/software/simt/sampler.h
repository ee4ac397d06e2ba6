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
  // The texture passed check(). Both outlive the sampler. What does not change from fetch to fetch is found out here.
  Sampler(const Texture& texture, const MemoryMap& memory);

  Texel sample(const TexturePlace& place);
  // The element at whole coordinates, without filter (tex with .s32 coordinates).
  Texel element(const int32_t (&at)[3], uint32_t layer);
  // One channel of the four elements that a linear filter would mix, in the order of tld4.
  Texel gather(const TexturePlace& place, uint32_t channel);

  // The next call's addresses are wanted.
  void restart() { bad_address_ = first_address_ = 0; }
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
  struct Axis {
    int64_t size = 1;
    AddressMode mode = AddressMode::kClamp;
    bool turns = false;  // beyond the end it goes on from the beginning, or backwards
  };

  Taps taps(const Axis& axis, float coordinate, bool linear) const;
  static int64_t resolve(const Axis& axis, int64_t index);
  AddressMode mode(uint32_t axis) const;
  // Cubes: the face, and the place on it.
  TexturePlace on_face(const TexturePlace& place) const;
  uint32_t layer_of(uint32_t layer) const;
  // What most fetches are; false: not this one, and nothing is done.
  bool sample_inside(const TexturePlace& place, Texel& texel);
  Texel filter(const Taps (&axes)[3], uint32_t layer);
  Texel fetch(int64_t x, int64_t y, int64_t z, uint32_t layer);
  Texel decode(const std::byte* raw) const;
  uint32_t channel(const std::byte* raw, uint32_t c) const;

  const Texture& texture_;
  const MemoryMap& memory_;
  Axis axes_[3];
  uint32_t dimensions_ = 0, texel_bytes_ = 0;
  bool cube_ = false, layered_ = false, scaled_ = false;  // coordinates from 0 to 1
  bool reads_float_ = false, linear_ = false;
  bool plain_ = false;      // channels of four bytes, taken as they are
  bool all_there_ = false;  // every element is in memory
  bool common_ = false;     // one or two dimensions, one plain channel, by index
  uint64_t bad_address_ = 0, first_address_ = 0;
};

}  // namespace heddle::software
