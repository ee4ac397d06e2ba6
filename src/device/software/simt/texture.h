#pragma once

#include <cstdint>

#include "device/software/simt/op.h"

// tex, tld4, suld, sust and the queries txq and suq: lane by lane, since each may name another texture and place.
namespace heddle::software {

// What the instruction takes the texture for; another texture than that is a fault.
enum class Geometry : uint8_t { k1D, k2D, k3D, k1DLayered, k2DLayered, kCube, kCubeLayered };
enum class Boundary : uint8_t { kTrap, kClamp, kZero };
enum class TextureQuery : uint8_t { kWidth, kHeight, kDepth, kLayers, kLevels, kSamples, kNormalized };

// Kept in Op::imm. a: the handle. extra: the registers of values, then of coordinates (layer, x, y, z as far as the
// geometry has them).
struct TextureForm {
  Geometry geometry = Geometry::k1D;
  bool whole_coordinates = false;       // .s32
  bool gather = false;                  // tld4
  uint8_t channel = 0;                  // of tld4
  Boundary boundary = Boundary::kTrap;  // of surfaces, as are the following
  uint8_t element_bytes = 0;
  uint8_t elements = 0;
  TextureQuery query = TextureQuery::kWidth;
};
static_assert(sizeof(TextureForm) == sizeof(int64_t));

// How many coordinates, the layer included.
uint32_t coordinates_of(Geometry geometry);

// d: a predicate that says whether the elements are resident (they are), or none.
void fetch_texture(Warp& warp, const Op& op);
void load_surface(Warp& warp, const Op& op);
void store_surface(Warp& warp, const Op& op);
// d: the answer.
void query_texture(Warp& warp, const Op& op);

}  // namespace heddle::software
