// Which of the driver's functions a program's module calls, and when. The driver is a table of the test's own.

#include <gmock/gmock.h>

#include "device/cuda/program.h"
#include "image/fatbin_builder.h"

namespace heddle::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> loaded;      // kernels, in order
CUresult load_result = CUDA_SUCCESS;  // of cuFuncLoad
unsigned kernels = 65;                // that the module has, by its own account: many
const char* const kNames[] = {"first", "second"};

Driver driver() {
  Driver driver;
  driver.cuGetErrorName = [](CUresult, const char** text) {
    *text = "CUDA_ERROR_OUT_OF_MEMORY";
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult, const char** text) {
    *text = "out of memory";
    return CUDA_SUCCESS;
  };
  driver.cuModuleLoadData = [](CUmodule* module, const void*) {
    *module = reinterpret_cast<CUmodule>(1);
    return CUDA_SUCCESS;
  };
  driver.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) {
    for (const char* const& known : kNames) {
      if (std::string_view(known) != name) continue;
      *function = reinterpret_cast<CUfunction>(const_cast<char*>(known));
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  };
  driver.cuModuleGetFunctionCount = [](unsigned* count, CUmodule) {
    *count = kernels;
    return CUDA_SUCCESS;
  };
  driver.cuModuleEnumerateFunctions = [](CUfunction* out, unsigned count, CUmodule) {
    for (unsigned i = 0; i < count; ++i) out[i] = reinterpret_cast<CUfunction>(const_cast<char*>(kNames[i]));
    return CUDA_SUCCESS;
  };
  driver.cuFuncLoad = [](CUfunction function) {
    loaded.emplace_back(reinterpret_cast<const char*>(function));
    return load_result;
  };
  driver.cuFuncGetParamInfo = [](CUfunction, size_t, size_t*, size_t*) { return CUDA_ERROR_INVALID_VALUE; };
  return driver;
}

struct KernelLoading : testing::Test {
  void SetUp() override {
    kernels = 65;
    load();
  }
  void load() {
    loaded.clear();
    load_result = CUDA_SUCCESS;
    const std::string fatbin = image::FatbinBuilder().add(image::kFatbinPtx, 75, ".version 7.0\n").build();
    auto made = Program::load(table, std::as_bytes(std::span(fatbin)), 90);
    ASSERT_TRUE(made) << made.error().text;
    program = std::move(*made);
  }
  const Driver table = driver();
  std::unique_ptr<Program> program;
};

TEST_F(KernelLoading, LoadsTheFewKernelsOfAModuleWithIt) {
  kernels = 2;
  load();
  EXPECT_THAT(loaded, ElementsAre("first", "second"));
}

TEST_F(KernelLoading, LoadsOneOfManyKernelsWhenItIsCalledFirst) {
  EXPECT_THAT(loaded, ElementsAre());
  ASSERT_TRUE(program->kernel("second"));
  ASSERT_TRUE(program->kernel("second"));
  EXPECT_THAT(loaded, ElementsAre("second"));
}

TEST_F(KernelLoading, NamesTheKernelThatCannotBeLoaded) {
  load_result = CUDA_ERROR_OUT_OF_MEMORY;
  const auto refused = program->kernel("first");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_THAT(refused.error().text, HasSubstr("kernel 'first'"));
  load_result = CUDA_SUCCESS;
  EXPECT_TRUE(program->kernel("first")) << "it is asked again";
}

TEST_F(KernelLoading, HasNoKernelOfAnotherName) {
  EXPECT_EQ(program->kernel("third").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace heddle::cuda
