// The wrappers that nvcc puts into object files, as the program's start-up code hands them over: this program is linked
// with testdata/whole.cu and with the -rdc pair unit_a.cu and unit_b.cu, and the functions below stand in for the CUDA
// runtime that their constructors call.

#include <gtest/gtest.h>

#include "image/describe.h"
#include "image/fatbin.h"

namespace {
// Constructors of other objects fill it, so it must need no construction of its own.
constexpr int kMostWrappers = 8;
const void* wrappers[kMostWrappers];
int wrapper_count = 0;
}  // namespace

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper) {
  static void* handle = nullptr;
  if (wrapper_count < kMostWrappers) wrappers[wrapper_count++] = wrapper;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
int __cudaLaunchKernel() {
  return 0;
}
int __cudaGetKernel() {
  return 0;
}
int __cudaPopCallConfiguration() {
  return 0;
}
char __cudaInitModule(void**) {
  return 0;
}
}

namespace heddle::image {
namespace {

// The images behind the registered wrapper of this version.
std::vector<Image> registered_images(uint32_t version) {
  for (int i = 0; i < wrapper_count; ++i) {
    uint32_t fields[2];
    memcpy(fields, wrappers[i], sizeof(fields));
    if (fields[1] != version) continue;
    const auto fatbins = fatbins_of_wrapper(wrappers[i]);
    EXPECT_TRUE(fatbins) << fatbins.error().text;
    auto images = read_fatbins(*fatbins);
    EXPECT_TRUE(images) << images.error().text;
    return *images;
  }
  ADD_FAILURE() << "no wrapper of version " << version;
  return {};
}

TEST(RegisteredWrapper, OneUnit) {
  const std::vector<Image> images = registered_images(1);
  ASSERT_EQ(images.size(), 2u);
  const auto ptx = choose_ptx(images, 90);
  ASSERT_TRUE(ptx) << ptx.error().text;
  const auto module = describe(images);
  ASSERT_TRUE(module) << module.error().text;
  ASSERT_TRUE(module->kernel("_Z5alonePii"));
  EXPECT_EQ(module->kernel("_Z5alonePii")->parameter_bytes, 12u);
}

TEST(RegisteredWrapper, SeparatelyCompiledUnits) {
  const std::vector<Image> images = registered_images(2);
  const auto units = choose_ptx_units(images, 90);
  ASSERT_TRUE(units) << units.error().text;
  EXPECT_EQ(units->size(), 2u);

  const auto module = describe(images);
  ASSERT_TRUE(module) << module.error().text;
  const KernelInfo* first = module->kernel("_Z5firstPf");
  ASSERT_TRUE(first && module->kernel("_Z6secondPic"));
  EXPECT_GT(first->registers, 0u);
  EXPECT_EQ(first->static_shared, 48u);  // of the other unit's function, 40 bytes
  EXPECT_EQ(module->variable("across")->size, 4u);
  EXPECT_TRUE(module->variable("factors")->constant);

  // Without the linked machine code, PTX alone says the same.
  std::vector<std::string_view> texts;
  for (const Image* unit : *units) texts.push_back(unit->bytes);
  const auto from_ptx = describe_ptx_units(texts);
  ASSERT_TRUE(from_ptx) << from_ptx.error().text;
  EXPECT_EQ(from_ptx->kernel("_Z5firstPf")->static_shared, 48u);
}

}  // namespace
}  // namespace heddle::image
