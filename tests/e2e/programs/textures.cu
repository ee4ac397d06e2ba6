// Textures and surfaces of every kind of resource, each against what the host computes.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"

constexpr int kWidth = 64, kHeight = 32, kLayers = 6;

int failures = 0;
void expect(const char* what, float got, float expected) {
  if (std::fabs(got - expected) <= 1e-3f) return;
  if (++failures <= 10) std::printf("textures: %s: %f, expected %f\n", what, got, expected);
}

float value(int x, int y, int z = 0) {
  return static_cast<float>(x + 100 * y + 10000 * z);
}

__global__ void sample_2d(cudaTextureObject_t texture, float scale_x, float scale_y, float shift, float* out) {
  const int x = threadIdx.x, y = blockIdx.x;
  out[y * kWidth + x] = tex2D<float>(texture, (x + shift) * scale_x, (y + shift) * scale_y);
}

__global__ void sample_bytes(cudaTextureObject_t texture, float4* out) {
  out[threadIdx.x] = tex2D<float4>(texture, threadIdx.x, 1);
}

__global__ void fetch_buffer(cudaTextureObject_t texture, int* out) {
  out[threadIdx.x] = tex1Dfetch<int>(texture, static_cast<int>(threadIdx.x) - 4);
}

__global__ void sample_layers(cudaTextureObject_t layers, cudaTextureObject_t solid, cudaTextureObject_t cube,
                              float* out) {
  const int z = threadIdx.x;
  out[z] = tex2DLayered<float>(layers, 5, 7, z);
  out[kLayers + z] = tex3D<float>(solid, 5, 7, z);
  const float3 directions[kLayers] = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
  out[2 * kLayers + z] = texCubemap<float>(cube, directions[z].x, directions[z].y, directions[z].z);
}

__global__ void double_surface(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  const int x = threadIdx.x, y = blockIdx.x;
  const float mirrored = surf2Dread<float>(from, (kWidth - 1 - x) * 4, y);
  surf2Dwrite(2 * mirrored, to, x * 4, y);
  surf2Dwrite(-1.0f, to, -4, y, cudaBoundaryModeZero);
}

cudaResourceDesc resource_of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

cudaTextureObject_t texture_of(const cudaResourceDesc& resource, const cudaTextureDesc& sampling) {
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
  return texture;
}

cudaArray_t box_of_floats(cudaExtent extent, unsigned flags) {
  cudaArray_t array;
  const auto format = cudaCreateChannelDesc<float>();
  CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
  std::vector<float> values;
  for (size_t z = 0; z < extent.depth; ++z)
    for (size_t y = 0; y < extent.height; ++y)
      for (size_t x = 0; x < extent.width; ++x) values.push_back(value(x, y, z));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(values.data(), extent.width * 4, extent.width, extent.height);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  return array;
}

std::vector<float> plane() {
  std::vector<float> values;
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) values.push_back(value(x, y));
  return values;
}

cudaArray_t array_of(const std::vector<float>& values, unsigned flags = 0) {
  cudaArray_t array;
  const auto format = cudaCreateChannelDesc<float>();
  CHECK(cudaMallocArray(&array, &format, kWidth, kHeight, flags));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, values.data(), kWidth * 4, kWidth * 4, kHeight, cudaMemcpyHostToDevice));
  return array;
}

void arrays() {
  const auto values = plane();
  const cudaArray_t array = array_of(values);
  std::vector<float> result(values.size());
  float* out;
  CHECK(cudaMalloc(&out, 4 * result.size()));

  cudaTextureDesc sampling{};
  sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
  const cudaTextureObject_t nearest = texture_of(resource_of(array), sampling);
  sample_2d<<<kHeight, kWidth>>>(nearest, 1, 1, 0.5f, out);
  CHECK(cudaMemcpy(result.data(), out, 4 * result.size(), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < values.size(); ++i) expect("nearest", result[i], values[i]);

  sampling.filterMode = cudaFilterModeLinear;
  const cudaTextureObject_t linear = texture_of(resource_of(array), sampling);
  sample_2d<<<kHeight, kWidth>>>(linear, 1, 1, 0.75f, out);
  CHECK(cudaMemcpy(result.data(), out, 4 * result.size(), cudaMemcpyDeviceToHost));
  for (int y = 0; y + 1 < kHeight; ++y)
    for (int x = 0; x + 1 < kWidth; ++x) expect("linear", result[y * kWidth + x], value(x, y) + 25.25f);

  sampling.filterMode = cudaFilterModePoint;
  sampling.normalizedCoords = 1;
  sampling.addressMode[0] = cudaAddressModeWrap;
  sampling.addressMode[1] = cudaAddressModeMirror;
  const cudaTextureObject_t wrapped = texture_of(resource_of(array), sampling);
  sample_2d<<<kHeight, kWidth>>>(wrapped, 3.0f / kWidth, 2.0f / kHeight, 0.25f, out);
  CHECK(cudaMemcpy(result.data(), out, 4 * result.size(), cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const int along = static_cast<int>((x + 0.25f) * 3) % kWidth, down = static_cast<int>((y + 0.25f) * 2);
      expect("wrapped", result[y * kWidth + x], value(along, down < kHeight ? down : 2 * kHeight - 1 - down));
    }
  CHECK(cudaDestroyTextureObject(nearest));
  CHECK(cudaDestroyTextureObject(linear));
  CHECK(cudaDestroyTextureObject(wrapped));
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(out));
}

void buffers() {
  std::vector<int> numbers(16), result(24);
  for (int i = 0; i < 16; ++i) numbers[i] = i + 1;
  int *memory, *out;
  CHECK(cudaMalloc(&memory, 4096));
  CHECK(cudaMalloc(&out, 4096));
  CHECK(cudaMemcpy(memory, numbers.data(), 64, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, cudaCreateChannelDesc<int>(), 64};
  const cudaTextureObject_t texture = texture_of(resource, {});
  fetch_buffer<<<1, 24>>>(texture, out);
  CHECK(cudaMemcpy(result.data(), out, 96, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 24; ++i) expect("buffer", result[i], i >= 4 && i < 20 ? i - 3 : 0);
  CHECK(cudaDestroyTextureObject(texture));

  uchar4* pixels;
  size_t pitch;
  CHECK(cudaMallocPitch(&pixels, &pitch, 16 * 4, 2));
  std::vector<unsigned char> bytes(128);
  for (int i = 0; i < 128; ++i) bytes[i] = 2 * i;
  CHECK(cudaMemcpy2D(pixels, pitch, bytes.data(), 64, 64, 2, cudaMemcpyHostToDevice));
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {pixels, cudaCreateChannelDesc<uchar4>(), 16, 2, pitch};
  cudaTextureDesc sampling{};
  sampling.readMode = cudaReadModeNormalizedFloat;
  const cudaTextureObject_t rows = texture_of(resource, sampling);
  sample_bytes<<<1, 16>>>(rows, reinterpret_cast<float4*>(out));
  std::vector<float4> colours(16);
  CHECK(cudaMemcpy(colours.data(), out, 256, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 16; ++i) {
    expect("pixel x", colours[i].x, bytes[64 + 4 * i] / 255.0f);
    expect("pixel w", colours[i].w, bytes[64 + 4 * i + 3] / 255.0f);
  }
  CHECK(cudaDestroyTextureObject(rows));
  CHECK(cudaFree(pixels));
  CHECK(cudaFree(memory));
  CHECK(cudaFree(out));
}

void layers() {
  const cudaArray_t layered = box_of_floats({kWidth, kHeight, kLayers}, cudaArrayLayered);
  const cudaArray_t solid = box_of_floats({kWidth, kHeight, kLayers}, 0);
  const cudaArray_t cube = box_of_floats({8, 8, 6}, cudaArrayCubemap);
  cudaTextureDesc sampling{};
  const cudaTextureObject_t textures[] = {texture_of(resource_of(layered), sampling),
                                          texture_of(resource_of(solid), sampling), 0};
  sampling.normalizedCoords = 1;
  sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
  const cudaTextureObject_t cube_texture = texture_of(resource_of(cube), sampling);
  float* out;
  std::vector<float> result(3 * kLayers);
  CHECK(cudaMalloc(&out, 4 * result.size()));
  sample_layers<<<1, kLayers>>>(textures[0], textures[1], cube_texture, out);
  CHECK(cudaMemcpy(result.data(), out, 4 * result.size(), cudaMemcpyDeviceToHost));
  for (int z = 0; z < kLayers; ++z) {
    expect("layer", result[z], value(5, 7, z));
    expect("3D", result[kLayers + z], value(5, 7, z));
    expect("face", result[2 * kLayers + z], value(4, 4, z));
  }
  CHECK(cudaDestroyTextureObject(textures[0]));
  CHECK(cudaDestroyTextureObject(textures[1]));
  CHECK(cudaDestroyTextureObject(cube_texture));
  CHECK(cudaFreeArray(layered));
  CHECK(cudaFreeArray(solid));
  CHECK(cudaFreeArray(cube));
  CHECK(cudaFree(out));
}

void surfaces() {
  const auto values = plane();
  const cudaArray_t from = array_of(values, cudaArraySurfaceLoadStore);
  const cudaArray_t to = array_of(values, cudaArraySurfaceLoadStore);
  const cudaResourceDesc from_resource = resource_of(from), to_resource = resource_of(to);
  cudaSurfaceObject_t source, target;
  CHECK(cudaCreateSurfaceObject(&source, &from_resource));
  CHECK(cudaCreateSurfaceObject(&target, &to_resource));
  double_surface<<<kHeight, kWidth>>>(source, target);
  std::vector<float> result(values.size());
  CHECK(cudaMemcpy2DFromArray(result.data(), kWidth * 4, to, 0, 0, kWidth * 4, kHeight, cudaMemcpyDeviceToHost));
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) expect("surface", result[y * kWidth + x], 2 * value(kWidth - 1 - x, y));
  CHECK(cudaDestroySurfaceObject(source));
  CHECK(cudaDestroySurfaceObject(target));
  CHECK(cudaFreeArray(from));
  CHECK(cudaFreeArray(to));
}

// One object over several tasks: the worker that knew it first is gone when it is used again.
void tasks() {
  const auto values = plane();
  std::vector<float> result(values.size());
  float *memory, *out;
  CHECK(cudaMalloc(&memory, 4096));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, cudaCreateChannelDesc<int>(), 4096};
  const cudaTextureObject_t unused = texture_of(resource, {});
  CHECK(cudaMemset(memory, 0, 4096));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(memory));  // the last buffer: the task ends, its worker too

  const cudaArray_t array = array_of(values);
  const cudaTextureObject_t texture = texture_of(resource_of(array), {});
  CHECK(cudaMalloc(&out, 4 * result.size()));
  sample_2d<<<kHeight, kWidth>>>(texture, 1, 1, 0.5f, out);
  CHECK(cudaMemcpy(result.data(), out, 4 * result.size(), cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < values.size(); ++i) expect("second task", result[i], values[i]);
  CHECK(cudaDestroyTextureObject(unused));
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  CHECK(cudaFree(out));
}

int main() {
  arrays();
  buffers();
  layers();
  surfaces();
  tasks();
  CHECK(cudaDeviceSynchronize());
  std::printf("textures: %s\n", failures ? "FAIL" : "PASS");
  return failures ? 1 : 0;
}
