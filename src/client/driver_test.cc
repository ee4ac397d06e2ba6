// The driver API's tables of functions, and what its functions do before a device is asked, against a heddled and
// workers in threads of this process.

#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "client/driver/contexts.h"
#include "client/driver/functions.h"
#include "client/driver/proc_address.h"
#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using ::testing::HasSubstr;
using ::testing::IsNull;
using ::testing::NotNull;
using testing::the_heddled;

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new testing::Environment({.devices = 2, .budget = 64 * kMiB}));

// UndefinedBehaviorSanitizer knows the functions' own types, and programs have others for the same arguments.
#ifdef __clang__
#define HEDDLE_CALLS_AS_PROGRAMS_DO [[clang::no_sanitize("function")]]
#else
#define HEDDLE_CALLS_AS_PROGRAMS_DO
#endif

// A function of the driver by the name that libcuda exports, as a program calls it.
template <class... Arguments>
HEDDLE_CALLS_AS_PROGRAMS_DO CUresult call(const char* name, Arguments... arguments) {
  void* const function = driver_function(name);
  EXPECT_THAT(function, NotNull()) << name;
  if (!function) return CUDA_ERROR_UNKNOWN;
  return reinterpret_cast<CUresult (*)(Arguments...)>(function)(arguments...);
}

bool is_unsupported(const std::string& name) {
  for (const DriverFunction& row : unsupported_driver_functions()) {
    if (name == row.name) return true;
  }
  return false;
}

TEST(DriverTables, HaveEveryNameOfTheListAsItSays) {
  std::ifstream list(HEDDLE_CUDA_EXPORTS);
  std::set<std::string> listed;
  for (std::string line; std::getline(list, line);) {
    std::string name, kind;
    std::istringstream(line) >> name >> kind;
    if (name.starts_with('#') || kind == "own") continue;
    listed.insert(name);
    EXPECT_THAT(driver_function(name), NotNull()) << name;
    EXPECT_EQ(is_unsupported(name), kind == "unsupported") << name;
  }
  EXPECT_GT(listed.size(), 600u);
  for (const auto& table : driver_functions()) {
    for (const DriverFunction& row : table) {
      EXPECT_TRUE(listed.contains(row.name)) << row.name;
      if (row.twin) {
        EXPECT_TRUE(listed.contains(std::string(row.name) + row.twin)) << row.name << row.twin;
      }
    }
  }
}

TEST(DriverTables, NoNameStandsTwice) {
  std::set<std::string> seen;
  for (const auto& table : driver_functions()) {
    for (const DriverFunction& row : table) EXPECT_TRUE(seen.insert(row.name).second) << row.name;
  }
}

TEST(ProcAddress, GivesTheNewestFormThatTheVersionKnows) {
  EXPECT_EQ(find_driver_function("cuCtxCreate", 11030, false).function, driver_function("cuCtxCreate_v2"));
  EXPECT_EQ(find_driver_function("cuCtxCreate", 12000, false).function, driver_function("cuCtxCreate_v3"));
  EXPECT_EQ(find_driver_function("cuCtxCreate", 13000, false).function, driver_function("cuCtxCreate_v4"));
  EXPECT_EQ(find_driver_function("cuMemAlloc", 12000, false).function, driver_function("cuMemAlloc_v2"));
  EXPECT_EQ(find_driver_function("cuMemAlloc_v2", 12000, false).function, driver_function("cuMemAlloc_v2"));
  EXPECT_EQ(find_driver_function("cuMemcpyHtoD", 12000, true).function, driver_function("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(find_driver_function("cuInit", 12000, true).function, driver_function("cuInit"));
  EXPECT_EQ(find_driver_function("cuKernelGetName", 12000, false).result, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(find_driver_function("cuNothing", 12000, false).result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_THAT(find_driver_function("cuStreamWriteValue32", 12000, false).function, NotNull()) << "to be refused";
}

TEST(DriverCodes, AreTheRuntimesButForItsOwn) {
  EXPECT_EQ(driver_code(cudaSuccess), CUDA_SUCCESS);
  EXPECT_EQ(driver_code(cudaErrorMemoryAllocation), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver_code(cudaErrorIllegalAddress), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(driver_code(cudaErrorInvalidConfiguration), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver_code(cudaErrorInvalidDeviceFunction), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(driver_code(cudaErrorInvalidSymbol), CUDA_ERROR_NOT_FOUND);
}

class DriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(call("cuInit", 0u), CUDA_SUCCESS);
    ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &primary_, 0), CUDA_SUCCESS);
    ASSERT_EQ(call("cuCtxPushCurrent_v2", primary_), CUDA_SUCCESS);
  }
  void TearDown() override {
    while (pop_context()) {
    }
    call("cuDevicePrimaryCtxRelease_v2", 0);
    cudaGetLastError();
  }
  CUcontext primary_ = nullptr;
};

TEST_F(DriverTest, RuntimesErrorsStayTheRuntimes) {
  CUdeviceptr memory = 0;
  EXPECT_EQ(call("cuMemAlloc_v2", &memory, size_t{1} << 40), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(call("cuMemFree_v2", CUdeviceptr{12}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(DriverTest, ThreadWithoutContextIsToldSo) {
  std::thread([] {
    CUdeviceptr memory = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &memory, size_t{4}), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(call("cuMemAlloc_v2", &memory, size_t{4}), CUDA_SUCCESS);
    EXPECT_EQ(call("cuMemFree_v2", memory), CUDA_SUCCESS);
  }).join();
}

TEST_F(DriverTest, ContextThatEndsReleasesWhatItOwns) {
  CUcontext context = nullptr;
  CUdeviceptr owned = 0, others = 0;
  cudaStream_t stream = nullptr;
  ASSERT_EQ(call("cuMemAlloc_v2", &others, size_t{4096}), CUDA_SUCCESS);
  ASSERT_EQ(call("cuCtxCreate_v2", &context, 0u, 0), CUDA_SUCCESS);
  ASSERT_EQ(call("cuMemAlloc_v2", &owned, size_t{4096}), CUDA_SUCCESS);
  ASSERT_EQ(call("cuStreamCreate", &stream, 0u), CUDA_SUCCESS);
  CUcontext of_stream = nullptr;
  EXPECT_EQ(call("cuStreamGetCtx", stream, &of_stream), CUDA_SUCCESS);
  EXPECT_EQ(of_stream, context);
  ASSERT_EQ(call("cuCtxDestroy_v2", context), CUDA_SUCCESS);
  size_t bytes = 0;
  EXPECT_EQ(call("cuMemGetAddressRange_v2", nullptr, &bytes, owned), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(call("cuMemGetAddressRange_v2", nullptr, &bytes, others), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4096u);
  EXPECT_EQ(call("cuStreamQuery", stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(call("cuMemFree_v2", others), CUDA_SUCCESS);
}

TEST_F(DriverTest, MemoryThatTheRuntimeFreedIsTheContextsNoMore) {
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(call("cuCtxCreate_v2", &context, 0u, 0), CUDA_SUCCESS);
  ASSERT_EQ(call("cuMemAlloc_v2", &memory, size_t{4096}), CUDA_SUCCESS);
  EXPECT_EQ(owner_of(Owned::kMemory, memory), context);
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(memory)), cudaSuccess);
  EXPECT_THAT(owner_of(Owned::kMemory, memory), IsNull());
  ASSERT_EQ(call("cuCtxDestroy_v2", context), CUDA_SUCCESS);
}

TEST_F(DriverTest, LastReleaseOfThePrimaryContextFreesItsMemory) {
  CUdeviceptr memory = 0;
  size_t bytes = 0;
  ASSERT_EQ(call("cuMemAlloc_v2", &memory, size_t{4096}), CUDA_SUCCESS);
  EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 0), CUDA_SUCCESS);
  EXPECT_EQ(call("cuMemGetAddressRange_v2", nullptr, &bytes, memory), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 0), CUDA_ERROR_INVALID_CONTEXT);
  ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &primary_, 0), CUDA_SUCCESS);
}

constexpr const char* kPtx =
    ".version 8.0\n.target sm_50\n.address_size 64\n.global .align 4 .u32 counter;\n"
    ".visible .entry kernel(\n.param .u64 a,\n.param .u32 b\n)\n{\nret;\n}\n";

TEST_F(DriverTest, LaunchesCarryParametersOfEitherForm) {
  struct Parameters {
    uint64_t a;
    uint32_t b;
  };
  std::mutex mutex;  // the worker is a thread of this process here
  std::vector<std::pair<uint64_t, uint32_t>> seen;
  the_heddled->set_kernel([&](const protocol::LaunchRecord&, const char* parameters) {
    Parameters read;
    std::memcpy(&read, parameters, 12);
    const std::lock_guard lock(mutex);
    seen.emplace_back(read.a, read.b);
  });
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(call("cuModuleLoadData", &module, static_cast<const void*>(kPtx)), CUDA_SUCCESS);
  ASSERT_EQ(call("cuModuleGetFunction", &function, module, "kernel"), CUDA_SUCCESS);
  Parameters values{7, 8};
  void* pointers[] = {&values.a, &values.b};
  size_t bytes = 12;
  void* packed[] = {reinterpret_cast<void*>(1), &values, reinterpret_cast<void*>(2), &bytes, nullptr};
  const auto launch = [&](void** parameters, void** extra) {
    return call("cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, cudaStream_t{}, parameters, extra);
  };
  EXPECT_EQ(launch(pointers, nullptr), CUDA_SUCCESS);
  values = {9, 10};
  EXPECT_EQ(launch(nullptr, packed), CUDA_SUCCESS);
  EXPECT_EQ(launch(pointers, packed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  bytes = 11;
  EXPECT_EQ(launch(nullptr, packed), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuCtxSynchronize"), CUDA_SUCCESS);
  {
    const std::lock_guard lock(mutex);
    EXPECT_THAT(seen, ::testing::ElementsAre(std::pair(7ul, 8u), std::pair(9ul, 10u)));
  }
  EXPECT_EQ(call("cuModuleUnload", module), CUDA_SUCCESS);
  EXPECT_EQ(launch(pointers, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverTest, LinkedUnitsAreOneModule) {
  cudaStream_t state = nullptr;  // CUlinkState: a pointer
  void* image = nullptr;
  size_t bytes = 0;
  const std::string other = ".version 8.0\n.target sm_50\n.address_size 64\n.visible .entry second()\n{\nret;\n}\n";
  ASSERT_EQ(call("cuLinkCreate_v2", 0u, nullptr, nullptr, &state), CUDA_SUCCESS);
  for (const std::string& unit : {std::string(kPtx), other})
    ASSERT_EQ(call("cuLinkAddData_v2", state, 1, unit.c_str(), unit.size() + 1, "unit", 0u, nullptr, nullptr),
              CUDA_SUCCESS);
  EXPECT_EQ(call("cuLinkAddData_v2", state, 4, "!<arch>", size_t{7}, "library", 0u, nullptr, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(call("cuLinkComplete", state, &image, &bytes), CUDA_SUCCESS);
  const std::vector<char> copy(static_cast<char*>(image), static_cast<char*>(image) + bytes);
  EXPECT_EQ(call("cuLinkDestroy", state), CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(call("cuModuleLoadData", &module, static_cast<const void*>(copy.data())), CUDA_SUCCESS);
  EXPECT_EQ(call("cuModuleGetFunction", &function, module, "kernel"), CUDA_SUCCESS);
  EXPECT_EQ(call("cuModuleGetFunction", &function, module, "second"), CUDA_SUCCESS);
}

}  // namespace
}  // namespace heddle::client
