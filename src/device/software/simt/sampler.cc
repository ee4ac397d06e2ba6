#include "device/software/simt/sampler.h"

#define HEDDLE_LANES common
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "device/software/simt/lanes/half.h"

namespace heddle::software {
namespace {

constexpr uint32_t kFaces = 6, kAlpha = 3;
constexpr uint32_t kOne = 0x3F800000;  // 1.0f
constexpr double kFarAway = 1 << 30;   // beyond any texture; keeps indices in range

bool is_layered(const Texture& texture) {
  return texture.shape == TextureShape::k1DLayered || texture.shape == TextureShape::k2DLayered;
}
bool is_cube(const Texture& texture) {
  return texture.shape == TextureShape::kCube || texture.shape == TextureShape::kCubeLayered;
}

float from_srgb(float value) {
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}

// Into [0, 1): what is left of whole turns, there and back again for mirrors.
double folded(double coordinate, AddressMode mode) {
  const double turn = std::floor(coordinate), rest = coordinate - turn;
  const bool back = mode == AddressMode::kMirror && std::fmod(turn, 2.0) != 0;
  return back ? 1.0 - rest : rest;
}

// The largest integer that is not above; within int64_t's range. Faster than std::floor where that is a call.
int64_t whole_below(double value) {
  const auto towards_zero = static_cast<int64_t>(value);
  return towards_zero - (static_cast<double>(towards_zero) > value);
}

// To the nearest 256th, halves to even: doubles above 2^52 are whole, so adding that much rounds.
float in_steps_of_256th(double weight) {
  constexpr double kRounds = 6755399441055744.0;  // 1.5 * 2^52
  return static_cast<float>((weight * 256 + kRounds - kRounds) / 256);
}

int64_t modulo(int64_t index, int64_t size) {
  return (index % size + size) % size;
}

}  // namespace

Sampler::Sampler(const Texture& texture, const MemoryMap& memory) : texture_(texture), memory_(memory) {
  const uint32_t sizes[] = {texture.width, texture.height, texture.depth};
  const bool flat = texture.shape == TextureShape::k1D || texture.shape == TextureShape::k1DLayered;
  dimensions_ = texture.shape == TextureShape::k3D ? 3 : flat ? 1 : 2;
  texel_bytes_ = texture.texel_bytes();
  cube_ = is_cube(texture);
  layered_ = is_layered(texture);
  scaled_ = texture.has(Texture::kNormalizedCoordinates) || cube_;
  reads_float_ =
      texture.kind == TexelKind::kFloat || (texture.has(Texture::kNormalizedValues) && texture.channel_bytes < 4);
  linear_ = texture.has(Texture::kLinearFilter) && reads_float_;
  plain_ = texture.channel_bytes == 4;
  all_there_ = memory.contains(texture.address, texture.bytes());
  common_ = plain_ && all_there_ && texture.channels == 1 && dimensions_ <= 2 && !cube_ && !layered_ && !scaled_;
  for (uint32_t axis = 0; axis < dimensions_; ++axis) {
    const AddressMode mode = this->mode(axis);
    axes_[axis] = {sizes[axis], mode, mode == AddressMode::kWrap || mode == AddressMode::kMirror};
  }
}

// Wrapping and mirroring need normalised coordinates; without them CUDA clamps. So it does on the faces of a cube.
AddressMode Sampler::mode(uint32_t axis) const {
  if (texture_.has(Texture::kBuffer)) return AddressMode::kBorder;
  const AddressMode mode = texture_.modes[axis];
  const bool turns = mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  return turns && (!texture_.has(Texture::kNormalizedCoordinates) || is_cube(texture_)) ? AddressMode::kClamp : mode;
}

int64_t Sampler::resolve(const Axis& axis, int64_t index) {
  const int64_t n = axis.size;
  if (index >= 0 && index < n) return index;
  switch (axis.mode) {
    case AddressMode::kWrap:
      return modulo(index, n);
    case AddressMode::kMirror: {
      const int64_t turned = modulo(index, 2 * n);
      return turned < n ? turned : 2 * n - 1 - turned;
    }
    case AddressMode::kBorder:
      return kOutside;
    case AddressMode::kClamp:
      break;
  }
  return std::clamp<int64_t>(index, 0, n - 1);
}

Sampler::Taps Sampler::taps(const Axis& axis, float coordinate, bool linear) const {
  double x = std::isnan(coordinate) ? 0 : std::clamp<double>(coordinate, -kFarAway, kFarAway);
  if (scaled_) {
    x = (axis.turns ? folded(x, axis.mode) : x) * static_cast<double>(axis.size);
    x = std::clamp(x, -kFarAway, kFarAway);
  }
  Taps taps;
  if (!linear) {
    taps.index[0] = resolve(axis, whole_below(x));
    return taps;
  }
  const int64_t begin = whole_below(x - 0.5);
  taps.weight = in_steps_of_256th(x - 0.5 - static_cast<double>(begin));
  taps.count = taps.weight == 0 ? 1 : 2;
  for (int i = 0; i < 2; ++i) taps.index[i] = resolve(axis, begin + i);
  return taps;
}

// The face that the direction hits, and where: the guide's table.
TexturePlace Sampler::on_face(const TexturePlace& place) const {
  const float x = place.at[0], y = place.at[1], z = place.at[2];
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  TexturePlace result;
  uint32_t face = 0;
  float major = ax, s = -z, t = -y;
  if (ax >= ay && ax >= az) {
    face = x < 0 ? 1 : 0;
    s = face ? z : -z;
  } else if (ay >= az) {
    major = ay, face = y < 0 ? 3 : 2;
    s = x, t = face == 3 ? -z : z;
  } else {
    major = az, face = z < 0 ? 5 : 4;
    s = face == 5 ? -x : x;
  }
  result.at[0] = (s / major + 1) / 2;
  result.at[1] = (t / major + 1) / 2;
  result.layer = std::min(place.layer, texture_.depth / kFaces - 1) * kFaces + face;
  return result;
}

uint32_t Sampler::layer_of(uint32_t layer) const {
  return layered_ ? std::min(layer, texture_.depth - 1) : 0;
}

// The same as the general way for places whose elements all lie inside: without its steps in memory, where a value that
// was stored in parts and is loaded whole costs more than the arithmetic.
bool Sampler::sample_inside(const TexturePlace& place, Texel& texel) {
  const double half = linear_ ? 0.5 : 0;
  const int64_t span = linear_ ? 1 : 0;
  int64_t begin[2] = {};
  float weight[2] = {};
  for (uint32_t axis = 0; axis < dimensions_; ++axis) {
    if (!(std::fabs(place.at[axis]) < kFarAway)) return false;
    const double x = static_cast<double>(place.at[axis]) - half;
    begin[axis] = whole_below(x);
    if (begin[axis] < 0 || begin[axis] + span >= axes_[axis].size) return false;
    if (linear_) weight[axis] = in_steps_of_256th(x - static_cast<double>(begin[axis]));
    if (weight[axis] == 1) return false;
  }
  first_address_ = texture_.address + static_cast<uint64_t>(begin[1]) * texture_.pitch +
                   static_cast<uint64_t>(begin[0]) * texel_bytes_;
  const auto* const first = reinterpret_cast<const std::byte*>(first_address_);
  const auto element = [&](uint64_t x, uint64_t y) {
    uint32_t bits;
    std::memcpy(&bits, first + y * texture_.pitch + x * sizeof bits, sizeof bits);
    return bits;
  };
  if (!linear_) {
    texel = {element(0, 0), 0, 0, reads_float_ ? kOne : 1};
    return true;
  }
  float sum = 0;
  for (uint32_t y = 0; y < (weight[1] == 0 ? 1u : 2u); ++y) {
    for (uint32_t x = 0; x < (weight[0] == 0 ? 1u : 2u); ++x)
      sum += (x ? weight[0] : 1 - weight[0]) * (y ? weight[1] : 1 - weight[1]) * std::bit_cast<float>(element(x, y));
  }
  texel = {std::bit_cast<uint32_t>(sum), 0, 0, kOne};
  return true;
}

Texel Sampler::sample(const TexturePlace& where) {
  if (Texel texel; common_ && sample_inside(where, texel)) return texel;
  const TexturePlace place = cube_ ? on_face(where) : where;
  const uint32_t layer = cube_ ? place.layer : layer_of(place.layer);
  Taps axes[3];
  for (uint32_t axis = 0; axis < dimensions_; ++axis) axes[axis] = taps(axes_[axis], place.at[axis], linear_);
  if (!linear_) return fetch(axes[0].index[0], axes[1].index[0], axes[2].index[0], layer);
  return filter(axes, layer);
}

Texel Sampler::filter(const Taps (&axes)[3], uint32_t layer) {
  Texels sum = {};
  for (uint32_t z = 0; z < axes[2].count; ++z) {
    for (uint32_t y = 0; y < axes[1].count; ++y) {
      for (uint32_t x = 0; x < axes[0].count; ++x) {
        const auto part = [](const Taps& taps, uint32_t i) { return i ? taps.weight : 1 - taps.weight; };
        const float weight = part(axes[0], x) * part(axes[1], y) * part(axes[2], z);
        if (weight == 0) continue;  // what counts for nothing may be infinite
        const Texel texel = fetch(axes[0].index[x], axes[1].index[y], axes[2].index[z], layer);
        for (uint32_t c = 0; c < sum.size(); ++c) sum[c] += weight * std::bit_cast<float>(texel[c]);
      }
    }
  }
  Texel result;
  for (uint32_t c = 0; c < sum.size(); ++c) result[c] = std::bit_cast<uint32_t>(sum[c]);
  return result;
}

Texel Sampler::element(const int32_t (&at)[3], uint32_t layer) {
  int64_t index[3] = {};
  for (uint32_t axis = 0; axis < dimensions_; ++axis) index[axis] = resolve(axes_[axis], at[axis]);
  return fetch(index[0], index[1], index[2], layer_of(layer));
}

// Counter-clockwise from the lower left, which is the row behind.
Texel Sampler::gather(const TexturePlace& where, uint32_t channel) {
  const TexturePlace place = cube_ ? on_face(where) : where;
  const uint32_t layer = cube_ ? place.layer : layer_of(place.layer);
  const Taps x = taps(axes_[0], place.at[0], true), y = taps(axes_[1], place.at[1], true);
  static constexpr uint32_t kOrder[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  Texel result;
  for (uint32_t i = 0; i < 4; ++i) result[i] = fetch(x.index[kOrder[i][0]], y.index[kOrder[i][1]], 0, layer)[channel];
  return result;
}

Texel Sampler::fetch(int64_t x, int64_t y, int64_t z, uint32_t layer) {
  if (x == kOutside || y == kOutside || z == kOutside) {
    // A buffer's outside is zero whatever the description says.
    if (texture_.has(Texture::kBuffer)) return {};
    return {texture_.border[0], texture_.border[1], texture_.border[2], texture_.border[3]};
  }
  const uint64_t address = texture_.address + static_cast<uint64_t>(z + layer) * texture_.slice +
                           static_cast<uint64_t>(y) * texture_.pitch + static_cast<uint64_t>(x) * texel_bytes_;
  if (first_address_ == 0) first_address_ = address;
  if (!all_there_ && !memory_.contains(address, texel_bytes_)) {
    if (bad_address_ == 0) bad_address_ = address;
    return {};
  }
  return decode(reinterpret_cast<const std::byte*>(address));
}

Texel Sampler::decode(const std::byte* raw) const {
  Texel texel = {0, 0, 0, reads_float_ ? kOne : 1};
  if (plain_) {
    std::memcpy(texel.data(), raw, texel_bytes_);
    return texel;
  }
  for (uint32_t c = 0; c < texture_.channels; ++c) texel[c] = channel(raw + size_t{c} * texture_.channel_bytes, c);
  return texel;
}

uint32_t Sampler::channel(const std::byte* raw, uint32_t c) const {
  uint32_t bits = 0;
  std::memcpy(&bits, raw, texture_.channel_bytes);
  const uint32_t width = 8u * texture_.channel_bytes;
  if (texture_.kind == TexelKind::kFloat)
    return width == 16 ? std::bit_cast<uint32_t>(common::widen(common::Half(bits))) : bits;
  const auto extended = static_cast<int32_t>(bits << (32 - width)) >> (32 - width);
  const bool is_signed = texture_.kind == TexelKind::kSigned;
  if (!reads_float_) return is_signed ? static_cast<uint32_t>(extended) : bits;
  if (is_signed) {
    const auto most = static_cast<float>((1 << (width - 1)) - 1);
    return std::bit_cast<uint32_t>(std::max(static_cast<float>(extended) / most, -1.0f));
  }
  float value = static_cast<float>(bits) / static_cast<float>((1 << width) - 1);
  if (texture_.has(Texture::kSrgb) && width == 8 && c != kAlpha) value = from_srgb(value);
  return std::bit_cast<uint32_t>(value);
}

}  // namespace heddle::software
