// CUDA arrays, texture and surface objects, against a heddled and workers in threads of this process.

#include <numeric>

#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::the_heddled;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 1, .budget = 64 * kMiB}));

constexpr cudaChannelFormatDesc kFloat{32, 0, 0, 0, cudaChannelFormatKindFloat};
constexpr cudaChannelFormatDesc kBytes4{8, 8, 8, 8, cudaChannelFormatKindUnsigned};

std::vector<float> numbers(size_t count) {
  std::vector<float> all(count);
  std::iota(all.begin(), all.end(), 1.0f);
  return all;
}

class ArrayTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    cudaGetLastError();
  }
  static cudaArray_t floats(size_t width, size_t height, unsigned flags = 0) {
    cudaArray_t array = nullptr;
    EXPECT_EQ(cudaMallocArray(&array, &kFloat, width, height, flags), cudaSuccess);
    return array;
  }
  static cudaResourceDesc of(cudaArray_t array) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
  }
  static std::vector<std::string> log_after_all_work() {
    // A copy back begins a task, so that the records before it are worked off.
    int* memory = nullptr;
    int value = 0;
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 4), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&value, memory, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    return the_heddled->log();
  }
};

TEST_F(ArrayTest, KnowsWhatItIs) {
  const cudaArray_t array = floats(8, 4, cudaArraySurfaceLoadStore);
  cudaChannelFormatDesc format{};
  cudaExtent extent{};
  unsigned flags = 0;
  ASSERT_EQ(cudaArrayGetInfo(&format, &extent, &flags, array), cudaSuccess);
  EXPECT_EQ(format.x, 32);
  EXPECT_EQ(format.f, cudaChannelFormatKindFloat);
  EXPECT_EQ(extent.width, 8u);
  EXPECT_EQ(extent.height, 4u);
  EXPECT_EQ(extent.depth, 0u);
  EXPECT_EQ(flags, cudaArraySurfaceLoadStore);
  ASSERT_EQ(cudaGetChannelDesc(&format, array), cudaSuccess);
  EXPECT_EQ(format.y, 0);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
  EXPECT_EQ(cudaFreeArray(array), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaFreeArray(nullptr), cudaSuccess);
}

TEST_F(ArrayTest, RowsGoInAndComeOut) {
  const cudaArray_t array = floats(8, 4);
  const auto values = numbers(32);
  std::vector<float> back(32), part(4);
  ASSERT_EQ(cudaMemcpy2DToArray(array, 0, 0, values.data(), 32, 32, 4, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2DFromArray(back.data(), 32, array, 0, 0, 32, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, values);
  ASSERT_EQ(cudaMemcpy2DFromArray(part.data(), 8, array, 8, 1, 8, 2, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_THAT(part, ElementsAre(11, 12, 19, 20));
}

TEST_F(ArrayTest, RunsGoOverTheEndsOfRows) {
  const cudaArray_t array = floats(4, 4), other = floats(4, 4);
  const auto values = numbers(6);
  std::vector<float> back(16);
  ASSERT_EQ(cudaMemcpyToArray(array, 8, 1, values.data(), 24, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpyArrayToArray(other, 0, 0, array, 8, 1, 24, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpyFromArray(back.data(), other, 0, 0, 24, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::vector<float>(back.begin(), back.begin() + 6), values);
  EXPECT_EQ(cudaMemcpyToArray(array, 0, 3, values.data(), 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

TEST_F(ArrayTest, ABoxOfAnArrayCountsElements) {
  cudaArray_t array = nullptr;
  ASSERT_EQ(cudaMalloc3DArray(&array, &kFloat, {4, 3, 2}, 0), cudaSuccess);
  const auto values = numbers(24);
  cudaMemcpy3DParms in{};
  in.srcPtr = {const_cast<float*>(values.data()), 16, 4, 3};
  in.dstArray = array;
  in.extent = {4, 3, 2};
  in.kind = cudaMemcpyHostToDevice;
  ASSERT_EQ(cudaMemcpy3D(&in), cudaSuccess);
  std::vector<float> part(4);
  cudaMemcpy3DParms out{};
  out.srcArray = array;
  out.srcPos = {1, 2, 0};
  out.dstPtr = {part.data(), 8, 2, 1};
  out.extent = {2, 1, 2};
  out.kind = cudaMemcpyDeviceToHost;
  ASSERT_EQ(cudaMemcpy3D(&out), cudaSuccess);
  EXPECT_THAT(part, ElementsAre(10, 11, 22, 23));
  out.srcPos = {3, 2, 0};
  EXPECT_EQ(cudaMemcpy3D(&out), cudaErrorInvalidValue);
}

TEST_F(ArrayTest, BoxesOfTwoArraysNeedElementsOfOneSize) {
  cudaArray_t bytes = nullptr, floats_too = nullptr;
  ASSERT_EQ(cudaMalloc3DArray(&bytes, &kBytes4, {4, 4, 0}, 0), cudaSuccess);
  constexpr cudaChannelFormatDesc kTwo{32, 32, 0, 0, cudaChannelFormatKindFloat};
  ASSERT_EQ(cudaMallocArray(&floats_too, &kTwo, 4, 4, 0), cudaSuccess);
  cudaMemcpy3DParms between{};
  between.srcArray = bytes;
  between.dstArray = floats_too;
  between.extent = {4, 4, 1};
  between.kind = cudaMemcpyDeviceToDevice;
  EXPECT_EQ(cudaMemcpy3D(&between), cudaErrorInvalidValue);
  between.dstArray = floats(4, 4);
  EXPECT_EQ(cudaMemcpy3D(&between), cudaSuccess);
}

TEST_F(ArrayTest, FormatsAndSizesThatDoNotExistAreRefused) {
  cudaArray_t array = nullptr;
  const auto make = [&](cudaChannelFormatDesc format, cudaExtent extent, unsigned flags) {
    return cudaMalloc3DArray(&array, &format, extent, flags);
  };
  EXPECT_EQ(make({8, 8, 8, 0, cudaChannelFormatKindUnsigned}, {4, 4, 0}, 0), cudaErrorInvalidChannelDescriptor);
  EXPECT_EQ(make({8, 16, 0, 0, cudaChannelFormatKindUnsigned}, {4, 4, 0}, 0), cudaErrorInvalidChannelDescriptor);
  EXPECT_EQ(make({8, 0, 0, 0, cudaChannelFormatKindFloat}, {4, 4, 0}, 0), cudaErrorInvalidChannelDescriptor);
  EXPECT_EQ(make({0, 0, 0, 0, cudaChannelFormatKindFloat}, {4, 4, 0}, 0), cudaErrorInvalidChannelDescriptor);
  EXPECT_EQ(make(kFloat, {0, 4, 0}, 0), cudaErrorInvalidValue);
  EXPECT_EQ(make(kFloat, {200000, 0, 0}, 0), cudaErrorInvalidValue);
  EXPECT_EQ(make(kFloat, {4, 8, 6}, cudaArrayCubemap), cudaErrorInvalidValue);
  EXPECT_EQ(make(kFloat, {4, 4, 0}, cudaArrayLayered), cudaErrorInvalidValue);
  EXPECT_EQ(make(kFloat, {4, 4, 0}, 0x40), cudaErrorNotSupported);
  EXPECT_EQ(make(kFloat, {8192, 8192, 0}, 0), cudaErrorMemoryAllocation);
  for (const auto& [extent, flags] : {std::pair(cudaExtent{8, 0, 0}, 0u),
                                      {cudaExtent{8, 0, 3}, cudaArrayLayered},
                                      {cudaExtent{8, 8, 6}, cudaArrayCubemap},
                                      {cudaExtent{8, 8, 12}, cudaArrayCubemap | cudaArrayLayered}})
    EXPECT_EQ(make(kFloat, extent, flags), cudaSuccess);
}

TEST_F(ArrayTest, ATextureObjectReachesTheWorkerAndLeavesIt) {
  const cudaResourceDesc resource = of(floats(8, 4));
  cudaTextureDesc sampling{};
  sampling.filterMode = 1;
  cudaTextureObject_t texture = 0;
  ASSERT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess);
  cudaResourceDesc resource_back{};
  cudaTextureDesc sampling_back{};
  ASSERT_EQ(cudaGetTextureObjectResourceDesc(&resource_back, texture), cudaSuccess);
  ASSERT_EQ(cudaGetTextureObjectTextureDesc(&sampling_back, texture), cudaSuccess);
  EXPECT_EQ(resource_back.res.array.array, resource.res.array.array);
  EXPECT_EQ(sampling_back.filterMode, 1);
  EXPECT_EQ(cudaDestroySurfaceObject(texture), cudaErrorInvalidValue);
  ASSERT_EQ(cudaDestroyTextureObject(texture), cudaSuccess);
  EXPECT_EQ(cudaDestroyTextureObject(texture), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetTextureObjectTextureDesc(&sampling_back, texture), cudaErrorInvalidValue);
  const auto log = log_after_all_work();
  const std::string number = std::to_string(texture);
  EXPECT_THAT(log, Contains(HasSubstr("texture " + number)));
  EXPECT_THAT(log, Contains("texture gone " + number));
}

TEST_F(ArrayTest, SlotsAreUsedAgainOnceTheirEndIsCommitted) {
  const cudaResourceDesc resource = of(floats(8, 4));
  const cudaTextureDesc sampling{};
  cudaTextureObject_t first = 0, texture = 0;
  ASSERT_EQ(cudaCreateTextureObject(&first, &resource, &sampling, nullptr), cudaSuccess);
  for (uint32_t i = 0; i < 2 * protocol::kMaxTextures; ++i) {
    ASSERT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess) << i;
    ASSERT_EQ(cudaDestroyTextureObject(texture), cudaSuccess);
    if (i % 1024 == 0) log_after_all_work();
  }
  EXPECT_EQ(cudaDestroyTextureObject(first), cudaSuccess);
}

TEST_F(ArrayTest, TexturesOfBuffersMustLieInThem) {
  char* memory = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&memory), 4096), cudaSuccess);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = kFloat;
  resource.res.linear.sizeInBytes = 4096;
  const cudaTextureDesc sampling{};
  cudaTextureObject_t texture = 0;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess);
  resource.res.linear.sizeInBytes = 64 * kMiB;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorInvalidValue);
  resource.res.linear.devPtr = memory + 1;
  resource.res.linear.sizeInBytes = 16;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorInvalidValue);
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {memory, kFloat, 16, 16, 64};
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess);
  resource.res.pitch2D.pitchInBytes = 63;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorInvalidValue);
  resource.resType = cudaResourceTypeMipmappedArray;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorNotSupported);
}

TEST_F(ArrayTest, IntegersAreFilteredOnlyAsFloats) {
  cudaArray_t array = nullptr;
  ASSERT_EQ(cudaMallocArray(&array, &kBytes4, 4, 4, 0), cudaSuccess);
  const cudaResourceDesc resource = of(array);
  cudaTextureDesc sampling{};
  sampling.filterMode = 1;
  cudaTextureObject_t texture = 0;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaErrorInvalidFilterSetting);
  sampling.readMode = 1;
  EXPECT_EQ(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr), cudaSuccess);
}

TEST_F(ArrayTest, SurfacesNeedAnArrayMadeForThem) {
  cudaSurfaceObject_t surface = 0;
  cudaResourceDesc resource = of(floats(8, 4));
  EXPECT_EQ(cudaCreateSurfaceObject(&surface, &resource), cudaErrorInvalidValue);
  resource = of(floats(8, 4, cudaArraySurfaceLoadStore));
  ASSERT_EQ(cudaCreateSurfaceObject(&surface, &resource), cudaSuccess);
  cudaResourceDesc back{};
  EXPECT_EQ(cudaGetSurfaceObjectResourceDesc(&back, surface), cudaSuccess);
  EXPECT_EQ(back.res.array.array, resource.res.array.array);
  EXPECT_EQ(cudaDestroySurfaceObject(surface), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
