// tex, tld4, suld, sust, txq and suq as instructions; what a fetch gives is sampler_test's.

#include "device/software/simt/texture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using testing::HasSubstr;
using Progress = Block::Progress;

constexpr uint64_t kHandle = 0x4854'01'000001'0005;

class Textures : public ::testing::Test {
 protected:
  // %t the thread, %x it as a float, %image the object, %mine the thread's four words of `out`.
  void load(const std::string& body) {
    machine_.load(
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".entry k(.param .u64 out, .param .u64 image) {\n"
        ".reg .b64 %rd<10>, %out, %image, %mine; .reg .b32 %r<10>, %t; .reg .b16 %h<5>; .reg .f32 %f<10>, %x;\n"
        ".reg .pred %p<5>;\n"
        "ld.param.u64 %out, [out]; ld.param.u64 %image, [image]; mov.u32 %t, %tid.x; cvt.rn.f32.u32 %x, %t;\n"
        "mul.wide.u32 %mine, %t, 16; add.u64 %mine, %mine, %out;\n" +
        body + "\nret; }\n");
  }
  Machine::Outcome outcome(uint64_t image = kHandle) {
    out_ = machine_.allocate(16 * kLanes);
    return machine_.run("k", {}, out_, image);
  }
  template <class T>
  std::vector<T> run() {
    auto ended = outcome();
    EXPECT_EQ(ended.progress, Progress::kFinished) << ended.refusal << ended.fault.text;
    return machine_.get<T>(out_, 16 * kLanes / sizeof(T));
  }
  std::string refusal(const std::string& body) {
    load(body);
    return outcome().refusal;
  }

  // Element (x, y, z) is x + 10 y + 100 z.
  Texture floats(TextureShape shape, uint32_t width, uint32_t height, uint32_t depth) {
    std::vector<float> values;
    for (uint32_t i = 0; i < width * height * depth; ++i)
      values.push_back(static_cast<float>(i % width + 10 * (i / width % height) + 100 * (i / width / height)));
    Texture texture;
    texture.shape = shape;
    texture.width = width, texture.height = height, texture.depth = depth;
    texture.pitch = 4ull * width, texture.slice = texture.pitch * height;
    texture.address = machine_.put(values);
    return texture;
  }
  void set(const Texture& texture) {
    machine_.textures().erase(kHandle);
    ASSERT_TRUE(machine_.textures().set(kHandle, texture));
  }

  Machine machine_;
  uint64_t out_ = 0;
};

const char* const kStore = "st.global.v4.f32 [%mine], {%f1, %f2, %f3, %f4};";

TEST_F(Textures, EveryGeometryTakesItsCoordinates) {
  struct Case {
    TextureShape shape;
    uint32_t height, depth;
    const char* fetch;
    float expected;  // of thread 3
  };
  const Case cases[] = {
      {TextureShape::k1D, 1, 1, "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x}];", 3},
      {TextureShape::k1D, 1, 1, "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%image, {%t}];", 3},
      {TextureShape::k2D, 4, 1, "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, 0f3F800000}];", 13},
      {TextureShape::k3D, 4, 4, "tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, 0f3F800000, %x, %x}];", 313},
      {TextureShape::k1DLayered, 1, 4, "tex.a1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {2, %x}];", 203},
      {TextureShape::k2DLayered, 4, 4, "tex.a2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {2, %x, 0f3F800000, %x}];",
       213},
      {TextureShape::kCube, 8, 6, "tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, %x, 0fC0A00000, %x}];", 511},
      {TextureShape::k2D, 4, 1, "tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, 0f3F800000}], 0f00000000;",
       13},
      {TextureShape::k2D, 4, 1,
       "tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, 0f3F800000}], {%x, %x}, {%x, %x};", 13},
  };
  for (const Case& c : cases) {
    set(floats(c.shape, 8, c.height, c.depth));
    load(std::string(c.fetch) + kStore);
    EXPECT_EQ(run<float>()[4 * 3], c.expected) << c.fetch;
  }
}

TEST_F(Textures, GuardedLanesAndDiscardedChannelsStayAsTheyWere) {
  set(floats(TextureShape::k1D, 32, 1, 1));
  load(
      "mov.f32 %f1, 0fBF800000; mov.f32 %f4, %f1; setp.lt.u32 %p1, %t, 4;\n"
      "@%p1 tex.1d.v4.f32.f32 {%f1, _, _, _}, [%image, {%x}]; st.global.v4.f32 [%mine], {%f1, %f1, %f1, %f4};");
  const auto result = run<float>();
  EXPECT_EQ(result[4 * 3], 3);
  EXPECT_EQ(result[4 * 4], -1);
  EXPECT_EQ(result[4 * 3 + 3], -1);
}

TEST_F(Textures, EveryElementIsResident) {
  set(floats(TextureShape::k1D, 32, 1, 1));
  load("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%image, {%x}]; selp.f32 %f2, 0f40000000, 0f00000000, %p1;" +
       std::string(kStore));
  EXPECT_EQ(run<float>()[1], 2);
}

TEST_F(Textures, AGatherTakesOneChannel) {
  set(floats(TextureShape::k2D, 8, 4, 1));
  load("tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, 0f40000000}];" + std::string(kStore));
  const auto result = run<float>();
  EXPECT_EQ((std::vector<float>(result.begin() + 12, result.begin() + 16)), (std::vector<float>{22, 23, 13, 12}));
}

TEST_F(Textures, LanesMayNameDifferentTextures) {
  machine_.textures().set(kHandle, floats(TextureShape::k1D, 32, 1, 1));
  Texture other = floats(TextureShape::k1D, 32, 1, 1);
  other.address += 4;
  machine_.textures().set(kHandle + 1, other);
  load(
      "and.b32 %r1, %t, 1; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd1, %image;\n"
      "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%x}];" +
      std::string(kStore));
  const auto result = run<float>();
  EXPECT_EQ(result[4 * 2], 2);
  EXPECT_EQ(result[4 * 3], 4);
}

TEST_F(Textures, SurfacesAreReadAndWrittenByBytes) {
  Texture surface = floats(TextureShape::k2D, 8, 4, 1);
  surface.flags = Texture::kSurface;
  set(surface);
  load(
      "shl.b32 %r1, %t, 2; and.b32 %r1, %r1, 31; suld.b.2d.b32.trap {%r2}, [%image, {%r1, 1}];\n"
      "sust.b.2d.b32.trap [%image, {%r1, 2}], {%r2}; st.global.b32 [%mine], %r2;");
  EXPECT_EQ(run<float>()[4 * 3], 13);
  EXPECT_EQ(machine_.get<float>(surface.address, 32)[16 + 3], 13);
}

TEST_F(Textures, SurfaceVectorsOfEveryElement) {
  Texture surface = floats(TextureShape::k1D, 32, 1, 1);
  surface.flags = Texture::kSurface;
  set(surface);
  load(
      "suld.b.1d.v4.b8.trap {%h1, %h2, %h3, %h4}, [%image, {4}]; cvt.u32.u16 %r1, %h3; cvt.u32.u16 %r2, %h4;\n"
      "suld.b.1d.v2.b64.trap {%rd1, %rd2}, [%image, {16}]; shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r3, %rd2;\n"
      "suld.b.1d.v2.b16.trap {%h1, %h2}, [%image, {4}]; cvt.u32.u16 %r4, %h2;\n"
      "st.global.v4.b32 [%mine], {%r1, %r2, %r3, %r4};");
  const auto result = run<uint32_t>();  // 1.0f is 0x3F800000
  EXPECT_EQ(result[0], 0x80u);
  EXPECT_EQ(result[1], 0x3Fu);
  EXPECT_EQ(result[2], std::bit_cast<uint32_t>(7.0f));
  EXPECT_EQ(result[3], 0x3F80u);
}

TEST_F(Textures, OutsideOfASurfaceTheModeDecides) {
  Texture surface = floats(TextureShape::k1D, 8, 1, 1);
  surface.flags = Texture::kSurface;
  set(surface);
  load(
      "suld.b.1d.b32.clamp {%r1}, [%image, {4000}]; suld.b.1d.b32.clamp {%r2}, [%image, {-4}];\n"
      "mov.b32 %r3, 7; suld.b.1d.b32.zero {%r3}, [%image, {32}]; mov.b32 %r4, 9;\n"
      "sust.b.1d.b32.zero [%image, {32}], {%r4}; sust.b.1d.b32.clamp [%image, {100}], {%r4};\n"
      "st.global.v4.b32 [%mine], {%r1, %r2, %r3, %r4};");
  const auto result = run<uint32_t>();
  EXPECT_EQ(result[0], std::bit_cast<uint32_t>(7.0f));
  EXPECT_EQ(result[1], 0u);
  EXPECT_EQ(result[2], 0u);
  EXPECT_EQ(machine_.get<uint32_t>(surface.address, 8)[7], 9u);
  load("sust.b.1d.b32.trap [%image, {32}], {%t};");
  auto ended = outcome();
  EXPECT_EQ(ended.fault.cuda_error, kCudaLaunchFailure);
  EXPECT_THAT(ended.fault.text, HasSubstr("outside of a surface"));
}

TEST_F(Textures, SurfacesOffTheirAlignmentAreFaults) {
  Texture surface = floats(TextureShape::k1D, 8, 1, 1);
  surface.flags = Texture::kSurface;
  set(surface);
  load("suld.b.1d.b32.trap {%r1}, [%image, {2}];");
  EXPECT_EQ(outcome().fault.cuda_error, kCudaMisalignedAddress);
}

TEST_F(Textures, SizesCanBeAskedFor) {
  set(floats(TextureShape::k2DLayered, 8, 4, 3));
  load(
      "txq.width.b32 %r1, [%image]; txq.height.b32 %r2, [%image]; txq.array_size.b32 %r3, [%image];\n"
      "txq.num_mipmap_levels.b32 %r4, [%image]; st.global.v4.b32 [%mine], {%r1, %r2, %r3, %r4};");
  const auto result = run<uint32_t>();
  EXPECT_EQ((std::vector<uint32_t>(result.begin(), result.begin() + 4)), (std::vector<uint32_t>{8, 4, 3, 1}));
}

TEST_F(Textures, AnObjectThatIsNotThereIsAFault) {
  load("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x}];");
  auto ended = outcome();
  EXPECT_EQ(ended.fault.cuda_error, kCudaLaunchFailure);
  EXPECT_THAT(ended.fault.text, HasSubstr("there is no texture object 0x4854010000010005 (kernel k, PTX line"));
  Texture surface = floats(TextureShape::k1D, 8, 1, 1);
  surface.flags = Texture::kSurface;
  set(surface);
  EXPECT_EQ(outcome().fault.cuda_error, kCudaLaunchFailure);
}

TEST_F(Textures, AnotherShapeThanTheInstructionsIsAFault) {
  set(floats(TextureShape::k2D, 8, 4, 1));
  load("tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, %x, %x, %x}];");
  EXPECT_THAT(outcome().fault.text, HasSubstr("an access of shape 3d to a texture of shape 2d"));
}

TEST_F(Textures, MemoryThatIsGoneIsAFault) {
  Texture texture = floats(TextureShape::k1D, 8, 1, 1);
  texture.address = 0x10000;
  set(texture);
  load("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x}];");
  EXPECT_EQ(outcome().fault.cuda_error, kCudaIllegalAddress);
}

TEST_F(Textures, WhatIsNotSupportedIsRefusedByName) {
  for (const char* body : {
           "tex.2dms.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%image, {0, %t, %t, %t}];",
           "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, {%x, %x}], {%r1, %r2};",
           "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%image, %image, {%x, %x}];",
           "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [reference, {%x, %x}];",
           "tex.2d.v2.f16x2.f32 {%r1, %r2}, [%image, {%x, %x}];",
           "sust.p.2d.v4.b32.trap [%image, {%t, %t}], {%r1, %r2, %r3, %r4};",
           "sured.b.add.2d.u32.trap [%image, {%t, %t}], %r1;",
           "txq.filter_mode.b32 %r1, [%image];",
       }) {
    const std::string why = refusal(body);
    const std::string name = std::string(body).substr(0, std::string(body).find(' '));
    EXPECT_THAT(why, HasSubstr("'" + name + "' is not supported")) << body;
    EXPECT_THAT(why, HasSubstr("kernel k: PTX line")) << body;
  }
}

}  // namespace
}  // namespace heddle::software
