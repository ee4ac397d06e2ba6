#include "device/software/simt/texture.h"

#define HEDDLE_LANES common
#include <bit>
#include <cstring>
#include <optional>

#include "device/software/simt/lanes/access.h"
#include "device/software/simt/sampler.h"
#include "device/software/simt/texture_table.h"

namespace heddle::software {
namespace {

using common::u32;
using common::u64;

constexpr u32 kValues = 4;  // of a fetch

bool has_layer(Geometry geometry) {
  return geometry == Geometry::k1DLayered || geometry == Geometry::k2DLayered || geometry == Geometry::kCubeLayered;
}

// Surfaces of cubes are written as layers.
bool fits(Geometry geometry, const Texture& texture) {
  const auto shape = static_cast<Geometry>(texture.shape);
  if (texture.has(Texture::kSurface) && geometry == Geometry::k2DLayered)
    return shape == geometry || shape == Geometry::kCube || shape == Geometry::kCubeLayered;
  return shape == geometry;
}

const char* name_of(Geometry geometry) {
  static constexpr const char* kNames[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};
  return kNames[static_cast<u32>(geometry)];
}

// The lanes of one instruction, one after the other.
class Lanes {
 public:
  Lanes(Warp& warp, const Op& op, bool surface)
      : warp_(warp), op_(op), form_(std::bit_cast<TextureForm>(op.imm)), surface_(surface) {}

  const TextureForm& form() const { return form_; }

  // Calls visit(lane, texture) until it says false or a texture is not there.
  template <class Visit>
  void for_each(Visit visit) {
    const u64* handles = common::lanes_of<u64>(warp_, op_.a);
    for (u32 rest = warp_.active; rest; rest &= rest - 1) {
      const auto lane = static_cast<u32>(std::countr_zero(rest));
      const Texture* texture = find(lane, handles[lane]);
      if (!texture || !visit(lane, *texture)) return;
    }
  }

  // Register i of the values, and of the coordinates behind them.
  u32 value(u32 i) const { return warp_.block->operands[op_.extra + i]; }
  u32 coordinate(u32 values, u32 i, u32 lane) const { return common::lanes_of<u32>(warp_, value(values + i))[lane]; }

  bool fail(u32 lane, const std::string& what) const {
    raise(warp_, op_, lane, kCudaLaunchFailure, what);
    return false;
  }

 private:
  const Texture* find(u32 lane, u64 handle) {
    if (known_ && handle == known_handle_) return known_;
    const TextureTable* table = warp_.block->launch.textures;
    const Texture* found = table ? table->find(handle) : nullptr;
    const char* kind = surface_ ? "surface" : "texture";
    if (!found || found->has(Texture::kSurface) != surface_) {
      fail(lane, stringf("there is no %s object %#llx", kind, static_cast<unsigned long long>(handle)));
      return nullptr;
    }
    known_ = found, known_handle_ = handle;
    return found;
  }

  Warp& warp_;
  const Op& op_;
  const TextureForm form_;
  const bool surface_;
  const Texture* known_ = nullptr;
  u64 known_handle_ = 0;
};

bool check_geometry(const Lanes& lanes, u32 lane, const Texture& texture) {
  if (fits(lanes.form().geometry, texture)) return true;
  return lanes.fail(lane, stringf("an access of shape %s to a %s of shape %s", name_of(lanes.form().geometry),
                                  texture.has(Texture::kSurface) ? "surface" : "texture",
                                  name_of(static_cast<Geometry>(texture.shape))));
}

// Traffic: the sectors of each lane's first element.
void count(Warp& warp, const u64 (&address)[kLanes], u32 active) {
  if (active) warp.global_bytes += common::traffic(address, active, 1);
}

Texel fetch(Sampler& sampler, const Lanes& lanes, u32 lane) {
  const TextureForm& form = lanes.form();
  const u32 skip = has_layer(form.geometry), count = coordinates_of(form.geometry) - skip;
  const u32 layer = skip ? lanes.coordinate(kValues, 0, lane) : 0;
  if (form.whole_coordinates) {
    int32_t at[3] = {};
    for (u32 i = 0; i < count; ++i) at[i] = static_cast<int32_t>(lanes.coordinate(kValues, skip + i, lane));
    return sampler.element(at, layer);
  }
  TexturePlace place;
  place.layer = layer;
  for (u32 i = 0; i < count; ++i) place.at[i] = std::bit_cast<float>(lanes.coordinate(kValues, skip + i, lane));
  return form.gather ? sampler.gather(place, form.channel) : sampler.sample(place);
}

// Where a surface access lies.
struct SurfacePlace {
  bool inside = true;
  u64 address = 0;
};

// Into [0, last], if the boundary mode says so; false where it lies outside and stays there.
bool bring_inside(int64_t& value, int64_t last, Boundary boundary) {
  if (value >= 0 && value <= last) return true;
  if (boundary != Boundary::kClamp) return false;
  value = value < 0 ? 0 : last;
  return true;
}

// x counts bytes.
SurfacePlace locate_surface(const Lanes& lanes, u32 lane, const Texture& texture, u32 bytes) {
  const TextureForm& form = lanes.form();
  const u32 layered = has_layer(form.geometry);
  const auto whole = [&](u32 i) { return int64_t{static_cast<int32_t>(lanes.coordinate(form.elements, i, lane))}; };
  const u32 count = coordinates_of(form.geometry) - layered;
  int64_t x = whole(layered), y = count > 1 ? whole(layered + 1) : 0;
  int64_t z = layered ? whole(0) : count > 2 ? whole(2) : 0;
  const int64_t row = int64_t{texture.width} * texture.texel_bytes();
  SurfacePlace place;
  place.inside = bring_inside(x, row - bytes, form.boundary) &&
                 bring_inside(y, int64_t{texture.height} - 1, form.boundary) &&
                 bring_inside(z, int64_t{texture.depth} - 1, form.boundary);
  if (place.inside)
    place.address = texture.address + static_cast<u64>(z) * texture.slice + static_cast<u64>(y) * texture.pitch +
                    static_cast<u64>(x);
  return place;
}

std::byte* register_bytes_of(const Warp& warp, u32 offset, u32 lane, u32 element_bytes) {
  return warp.registers + offset + size_t{lane} * (element_bytes == 8 ? 8 : 4);
}

// Elements of a lane between its registers and `host` (null: zeros).
void move_elements(const Warp& warp, const Lanes& lanes, u32 lane, std::byte* host, bool write) {
  const u32 bytes = lanes.form().element_bytes;
  for (u32 i = 0; i < lanes.form().elements; ++i) {
    std::byte* slot = register_bytes_of(warp, lanes.value(i), lane, bytes);
    if (write) {
      std::memcpy(host + size_t{i} * bytes, slot, bytes);
      continue;
    }
    u64 value = 0;
    if (host) std::memcpy(&value, host + size_t{i} * bytes, bytes);
    std::memcpy(slot, &value, bytes == 8 ? 8 : 4);
  }
}

void access_surface(Warp& warp, const Op& op, bool write) {
  Lanes lanes(warp, op, true);
  const u32 bytes = u32{lanes.form().element_bytes} * lanes.form().elements;
  u64 touched[kLanes] = {};
  u32 inside = 0;
  lanes.for_each([&](u32 lane, const Texture& texture) {
    if (!check_geometry(lanes, lane, texture)) return false;
    const SurfacePlace place = locate_surface(lanes, lane, texture, bytes);
    if (!place.inside) {
      if (lanes.form().boundary == Boundary::kTrap) return lanes.fail(lane, "an access outside of a surface");
      if (!write) move_elements(warp, lanes, lane, nullptr, false);
      return true;
    }
    const bool mapped = warp.block->memory->contains(place.address, bytes);
    if (!mapped || place.address % bytes) {
      raise_access_fault(warp, op, lane, place.address, bytes, write, mapped);
      return false;
    }
    touched[lane] = place.address;
    inside |= 1u << lane;
    move_elements(warp, lanes, lane, reinterpret_cast<std::byte*>(place.address), write);
    return true;
  });
  count(warp, touched, inside);
}

u32 answer(const Texture& texture, TextureQuery query) {
  const bool layered =
      texture.shape != TextureShape::k1D && texture.shape != TextureShape::k2D && texture.shape != TextureShape::k3D;
  switch (query) {
    case TextureQuery::kWidth:
      return texture.width;
    case TextureQuery::kHeight:
      return texture.height;
    case TextureQuery::kDepth:
      return texture.shape == TextureShape::k3D ? texture.depth : 1;
    case TextureQuery::kLayers:
      return layered ? texture.depth : 1;
    case TextureQuery::kLevels:
    case TextureQuery::kSamples:
      return 1;
    case TextureQuery::kNormalized:
      return texture.has(Texture::kNormalizedCoordinates);
  }
  return 0;
}

}  // namespace

uint32_t coordinates_of(Geometry geometry) {
  switch (geometry) {
    case Geometry::k1D:
      return 1;
    case Geometry::k2D:
    case Geometry::k1DLayered:
      return 2;
    case Geometry::k3D:
    case Geometry::k2DLayered:
    case Geometry::kCube:
      return 3;
    case Geometry::kCubeLayered:
      return 4;
  }
  return 0;
}

void fetch_texture(Warp& warp, const Op& op) {
  Lanes lanes(warp, op, false);
  u64 touched[kLanes] = {};
  u32 read = 0;
  std::optional<Sampler> sampler;  // of the texture that most lanes read
  const Texture* sampled = nullptr;
  lanes.for_each([&](u32 lane, const Texture& texture) {
    if (&texture != sampled) {
      if (!check_geometry(lanes, lane, texture)) return false;
      sampler.emplace(texture, *warp.block->memory);
      sampled = &texture;
    }
    sampler->restart();
    const Texel texel = fetch(*sampler, lanes, lane);
    if (sampler->bad_address()) {
      raise_access_fault(warp, op, lane, sampler->bad_address(), texture.texel_bytes(), false, false);
      return false;
    }
    for (u32 i = 0; i < kValues; ++i)
      if (lanes.value(i) != Op::kNone) common::lanes_of<u32>(warp, lanes.value(i))[lane] = texel[i];
    touched[lane] = sampler->first_address();
    read |= 1u << lane;
    return true;
  });
  count(warp, touched, read);
  if (op.d != Op::kNone) common::write_predicate(warp, op.d, kAllLanes);
}

void load_surface(Warp& warp, const Op& op) {
  access_surface(warp, op, false);
}

void store_surface(Warp& warp, const Op& op) {
  access_surface(warp, op, true);
}

void query_texture(Warp& warp, const Op& op) {
  Lanes lanes(warp, op, op.flags != 0);
  u32* d = common::lanes_of<u32>(warp, op.d);
  lanes.for_each([&](u32 lane, const Texture& texture) {
    d[lane] = answer(texture, lanes.form().query);
    return true;
  });
}

}  // namespace heddle::software
