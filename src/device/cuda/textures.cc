#include "device/cuda/textures.h"

#include <algorithm>
#include <cstring>

namespace heddle::cuda {
namespace {

uint32_t number_of(uint64_t handle) {
  return static_cast<uint32_t>(handle);
}

CUDA_RESOURCE_DESC in_memory(const Texture& texture) {
  CUDA_RESOURCE_DESC resource{};
  if (texture.has(Texture::kBuffer)) {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = texture.address;
    resource.res.linear.format = format_of(texture);
    resource.res.linear.numChannels = texture.channels;
    resource.res.linear.sizeInBytes = uint64_t{texture.width} * texture.texel_bytes();
  } else {
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D.devPtr = texture.address;
    resource.res.pitch2D.format = format_of(texture);
    resource.res.pitch2D.numChannels = texture.channels;
    resource.res.pitch2D.width = texture.width;
    resource.res.pitch2D.height = texture.height;
    resource.res.pitch2D.pitchInBytes = texture.pitch;
  }
  return resource;
}

CUDA_RESOURCE_DESC in_array(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  return resource;
}

CUDA_TEXTURE_DESC sampling_of(const Texture& texture) {
  CUDA_TEXTURE_DESC sampling{};
  for (size_t i = 0; i < std::size(texture.modes); ++i)
    sampling.addressMode[i] = static_cast<CUaddress_mode>(texture.modes[i]);  // CUDA's numbers
  sampling.filterMode = texture.has(Texture::kLinearFilter) ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
  if (texture.kind != TexelKind::kFloat && !texture.has(Texture::kNormalizedValues))
    sampling.flags |= CU_TRSF_READ_AS_INTEGER;
  if (texture.has(Texture::kNormalizedCoordinates)) sampling.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (texture.has(Texture::kSrgb)) sampling.flags |= CU_TRSF_SRGB;
  std::memcpy(sampling.borderColor, texture.border, sizeof sampling.borderColor);
  return sampling;
}

}  // namespace

Textures::~Textures() {
  for (const auto& [object, surface] : made_) {
    if (surface) {
      driver_.cuSurfObjectDestroy(object);
    } else {
      driver_.cuTexObjectDestroy(object);
    }
  }
  if (dot_) driver_.cuArrayDestroy(dot_);
}

void Textures::abandon() {
  made_.clear();
  dot_ = nullptr;
  images_.abandon();
}

Status Textures::set(uint64_t handle, const Texture& texture) {
  HEDDLE_TRY(check(texture));
  const uint32_t number = number_of(handle);
  const auto known = objects_.find(number);
  if (known != objects_.end() && known->second.handle == handle && known->second.texture == texture) return {};
  const bool possible = number >= kFirstTextureNumber && number % kTextureNumberStep == 0;
  if (!possible || number <= last_ || missing_.contains(number))
    return fail(ErrorCode::kInvalidArgument,
                "texture object number %u: it is odd or was used before, as all up to %u are", number,
                std::max(last_, kFirstTextureNumber - 1));
  if (number >= kEndOfTextureNumbers)
    return fail(ErrorCode::kLimitExceeded, "texture object number %u: a GPU has numbers below %u", number,
                kEndOfTextureNumbers);
  objects_[number] = {handle, texture};
  missing_[number] = texture;
  return {};
}

// Launches that wait for a hold may still want it: what is missing stays so.
Status Textures::remove(uint64_t handle) {
  const auto found = objects_.find(number_of(handle));
  if (found == objects_.end() || found->second.handle != handle)
    return fail(ErrorCode::kNotFound, "there is no texture or surface object %#llx",
                static_cast<unsigned long long>(handle));
  objects_.erase(found);
  return {};
}

Status Textures::make_missing(CUstream stream) {
  while (!missing_.empty()) {
    const auto [number, texture] = *missing_.begin();
    missing_.erase(missing_.begin());
    // An object may outlive its memory, as long as no kernel reads it.
    if (window_.accessible(texture.address, texture.bytes())) HEDDLE_TRY(make(number, texture, stream));
  }
  return driver_.check(images_.await_filled(stream), "cuStreamWaitEvent");
}

Status Textures::make(uint32_t number, const Texture& texture, CUstream stream) {
  HEDDLE_TRY(reach(number));
  Status made =
      needs_image(texture) ? make_with_image(number, texture, stream) : create_as(number, in_memory(texture), texture);
  if (!made && made.error().code == ErrorCode::kLimitExceeded) return {};  // of an array that is gone, with its room
  return made;
}

// Behind the program's object, one of our own for copies of the array, where it is the array's first.
Status Textures::make_with_image(uint32_t number, const Texture& texture, CUstream stream) {
  const auto image = images_.image_of(texture);
  if (!image) return tl::unexpected(image.error());
  const CUDA_RESOURCE_DESC array = in_array((*image)->array);
  HEDDLE_TRY(create_as(number, array, texture));
  if ((*image)->surface) return {};
  Texture ours;
  ours.flags = Texture::kSurface;
  HEDDLE_TRY(create(array, ours));
  return driver_.check(images_.fill(**image, made_.back().first, stream), "filling a CUDA array");
}

Status Textures::create_as(uint32_t number, const CUDA_RESOURCE_DESC& resource, const Texture& texture) {
  HEDDLE_TRY(create(resource, texture));
  if (last_ == number) return {};
  return fail(ErrorCode::kNotSupported, "the driver gives texture object %u the number %u", number, last_);
}

// Makes `number` the next one.
Status Textures::reach(uint32_t number) {
  while (last_ + 1 < number) HEDDLE_TRY(create_placeholder());
  return {};
}

Status Textures::create(const CUDA_RESOURCE_DESC& resource, const Texture& texture) {
  CUtexObject made = 0;
  if (texture.has(Texture::kSurface)) {
    HEDDLE_TRY(driver_.check(driver_.cuSurfObjectCreate(&made, &resource), "cuSurfObjectCreate"));
  } else {
    const CUDA_TEXTURE_DESC sampling = sampling_of(texture);
    HEDDLE_TRY(driver_.check(driver_.cuTexObjectCreate(&made, &resource, &sampling, nullptr), "cuTexObjectCreate"));
  }
  last_ = number_of(made);
  made_.emplace_back(made, texture.has(Texture::kSurface));
  return {};
}

Status Textures::create_placeholder() {
  if (!dot_) {
    CUDA_ARRAY3D_DESCRIPTOR description{};
    description.Width = 1;
    description.Format = CU_AD_FORMAT_FLOAT;
    description.NumChannels = 1;
    HEDDLE_TRY(driver_.check(driver_.cuArray3DCreate(&dot_, &description), "a CUDA array of one element"));
  }
  return create(in_array(dot_), Texture{});
}

}  // namespace heddle::cuda
