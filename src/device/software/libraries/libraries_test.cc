// Calls whose operands are this test's own; tests/e2e/programs/libraries.cu checks what they calculate.

#include "device/software/libraries/libraries.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cmath>
#include <numbers>

#include "library/cublas.h"
#include "library/cufft.h"
#include "library/curand.h"

namespace heddle::software {
namespace {

using library::Library;
using library::cublas::Number;
using library::cublas::Setting;

constexpr uint64_t kBytes = 4 * kMiB;  // mapped, of a window twice as large

struct LibrariesTest : testing::Test {
  void SetUp() override {
    void* reserved = ::mmap(nullptr, 4 * kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    window = Mapping(reserved, 4 * kBytes);
    base = round_up(reinterpret_cast<uint64_t>(reserved), MemoryMap::kGranule);
    auto made = DeviceMemory::create(base, 2 * kBytes);
    ASSERT_TRUE(made) << made.error().text;
    memory.emplace(std::move(*made));
    const auto backing = create_memfd("libraries_test", Bytes{kBytes});
    ASSERT_TRUE(backing);
    ASSERT_TRUE(memory->map(base, Bytes{kBytes}, *backing));
  }

  // 0, or the CUDA code of what was wrong.
  uint32_t run(const library::Call& call) {
    const auto demand = library::demand(call);
    EXPECT_TRUE(demand) << demand.error().text;
    auto problem = libraries.run(call, *demand, *memory);
    text = problem ? problem->text : "";
    return problem ? problem->cuda_error : 0;
  }
  uint32_t run(Number function, std::initializer_list<uint64_t> arguments, const Setting& setting = {}) {
    const auto packed = setting.pack();
    std::vector<uint64_t> words(packed.begin(), packed.end());
    words.insert(words.end(), arguments);
    return run({Library::kCublas, static_cast<uint32_t>(function), words});
  }
  uint32_t run_draw(const library::curand::Draw& draw) {
    const auto words = draw.pack();
    return run({Library::kCurand, 0, words});
  }
  template <class T>
  T* at(uint64_t offset) {
    return reinterpret_cast<T*>(base + offset);  // NOLINT(performance-no-int-to-ptr)
  }

  Mapping window;
  uint64_t base = 0;
  std::optional<DeviceMemory> memory;
  Libraries libraries{1};
  std::string text;
};

#define HEDDLE_NEEDS_OPENBLAS() \
  if (const auto opened = libraries.open(Library::kCublas); !opened) GTEST_SKIP() << opened.error().text

TEST_F(LibrariesTest, AMissingLibrarySaysWhatToInstall) {
  const auto missing = Openblas::load(1, "libnothing-of-this-name.so.0");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().text.find("libopenblas0-pthread"), std::string::npos) << missing.error().text;
}

TEST_F(LibrariesTest, OperandsMustBeMapped) {
  HEDDLE_NEEDS_OPENBLAS();
  const uint64_t end = base + kBytes;
  EXPECT_EQ(run(Number::Scopy_v2, {4, base, 1, base + 64, 1}), 0u);
  EXPECT_EQ(run(Number::Scopy_v2, {4, end - 16, 1, base, 1}), 0u);
  EXPECT_EQ(run(Number::Scopy_v2, {5, end - 16, 1, base, 1}), 700u);
  EXPECT_NE(text.find("cublasScopy_v2: 20 bytes"), std::string::npos) << text;
  EXPECT_EQ(run(Number::Scopy_v2, {4, base, 1, base + 3 * kBytes, 1}), 700u);
  EXPECT_EQ(run(Number::Scopy_v2, {4, reinterpret_cast<uint64_t>(&text), 1, base, 1}), 700u);  // this process's own
  EXPECT_EQ(run(Number::Scopy_v2, {0, 0, 1, 0, 1}), 0u);
}

TEST_F(LibrariesTest, ScalarsOnTheDeviceMustBeMappedToo) {
  HEDDLE_NEEDS_OPENBLAS();
  const Setting setting{.scalars_on_device = true};
  *at<float>(0) = 3, *at<float>(64) = 2;
  EXPECT_EQ(run(Number::Sscal_v2, {1, base, 0, base + 64, 1}, setting), 0u);
  EXPECT_EQ(*at<float>(64), 6);
  EXPECT_EQ(run(Number::Sscal_v2, {1, base + kBytes, 0, base + 64, 1}, setting), 700u);
}

TEST_F(LibrariesTest, WhatArraysPointToMustBeMapped) {
  HEDDLE_NEEDS_OPENBLAS();
  const uint64_t a = base + 4096, b = base + 8192, c = base + 12288;
  const uint64_t one = 0x3f800000;
  for (int i = 0; i < 4; ++i) *at<float>(4096 + 4 * i) = *at<float>(8192 + 4 * i) = static_cast<float>(i);
  auto* const arrays = at<uint64_t>(0);
  arrays[0] = arrays[1] = a, arrays[2] = arrays[3] = b, arrays[4] = c, arrays[5] = c + 64;
  const auto call = [&] {
    return run(Number::SgemmBatched, {0, 0, 2, 2, 2, one, 0, base, 2, base + 16, 2, 0, 0, base + 32, 2, 2});
  };
  EXPECT_EQ(call(), 0u);
  EXPECT_EQ(*at<float>(12288 + 12), 11);  // 1 * 2 + 3 * 3
  EXPECT_EQ(*at<float>(12288 + 64 + 12), 11);
  arrays[3] = base + kBytes - 15;
  EXPECT_EQ(call(), 700u);
  arrays[3] = 0;
  EXPECT_EQ(call(), 700u);
}

// Half precision in half precision: rounded once.
TEST_F(LibrariesTest, MixedTypesAreRoundedOnce) {
  HEDDLE_NEEDS_OPENBLAS();
  auto *const a = at<uint16_t>(0), *const b = at<uint16_t>(64), *const c = at<uint16_t>(128);
  a[0] = a[1] = b[0] = 0x3c00;  // 1
  b[1] = 0x1000;                // 2^-11: half of one's last place
  c[0] = 0x7e00;                // no number, and not read
  EXPECT_EQ(run(Number::Hgemm, {0, 0, 1, 1, 2, 0x3c00, 0, base, 1, base + 64, 2, 0, 0, base + 128, 1}), 0u);
  EXPECT_EQ(c[0], 0x3c00);  // to even
  b[1] = 0x1400;            // 2^-10
  EXPECT_EQ(run(Number::Hgemm, {0, 0, 1, 1, 2, 0x3c00, 0, base, 1, base + 64, 2, 0, 0, base + 128, 1}), 0u);
  EXPECT_EQ(c[0], 0x3c01);
}

// A complex answer is two numbers side by side; Fortran's functions return them in registers.
TEST_F(LibrariesTest, ComplexAnswersAreWrittenWhole) {
  HEDDLE_NEEDS_OPENBLAS();
  auto* const x = at<float>(0);
  x[0] = 1, x[1] = 2, x[2] = 3, x[3] = 4;
  EXPECT_EQ(run(Number::Cdotu_v2, {2, base, 1, base, 1, base + 64}), 0u);
  EXPECT_EQ(at<float>(64)[0], -10);
  EXPECT_EQ(at<float>(64)[1], 28);
  EXPECT_EQ(run(Number::Scasum_v2, {2, base, 1, base + 128}), 0u);
  EXPECT_EQ(at<float>(128)[0], 10);
}

// Without pivots a factorization is heddle's own: LAPACK has none.
TEST_F(LibrariesTest, MatricesAreFactorizedWithoutPivots) {
  HEDDLE_NEEDS_OPENBLAS();
  auto* const a = at<float>(4096);
  a[0] = 2, a[1] = 4, a[2] = 6, a[3] = 7;  // by columns: 2 6; 4 7
  *at<uint64_t>(0) = base + 4096;
  EXPECT_EQ(run(Number::SgetrfBatched, {2, base, 2, 0, base + 64, 1}), 0u);
  EXPECT_EQ(a[1], 2);
  EXPECT_EQ(a[3], -5);
  EXPECT_EQ(*at<int32_t>(64), 0);
  a[0] = 0;
  EXPECT_EQ(run(Number::SgetrfBatched, {2, base, 2, 0, base + 64, 1}), 0u);
  EXPECT_EQ(*at<int32_t>(64), 1);
  EXPECT_EQ(run(Number::SgetrfBatched, {2, base, 2, base + kBytes - 4, base + 64, 1}), 700u);  // pivots
}

// What is 1 at one place has a transform that turns with it, whatever the size.
TEST_F(LibrariesTest, TransformsOfEverySizeTurn) {
  EXPECT_TRUE(libraries.open(Library::kCufft));
  for (const int64_t size : {1, 5, 8, 12, 127}) {
    library::cufft::Transform transform;
    transform.type = type_of(library::cufft::Function::kZ2Z);
    transform.size[2] = size;
    transform.input = base, transform.output = base + 65536;
    std::fill_n(at<double>(0), 2 * size, 0.0);
    at<double>(0)[size > 1 ? 2 : 0] = 1;
    const auto words = transform.pack();
    EXPECT_EQ(run({Library::kCufft, static_cast<uint32_t>(library::cufft::Function::kZ2Z), words}), 0u);
    for (int64_t i = 0; i < size; ++i) {
      const double angle = size > 1 ? -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(size) : 0;
      EXPECT_NEAR(at<double>(65536)[2 * i], std::cos(angle), 1e-12) << size;
      EXPECT_NEAR(at<double>(65536)[2 * i + 1], std::sin(angle), 1e-12) << size;
    }
  }
}

TEST_F(LibrariesTest, RandomNumbersNeedNoLibrary) {
  EXPECT_TRUE(libraries.open(Library::kCurand));
  library::curand::Draw draw{1, 1, library::curand::kPhilox, 100, 1234, 0, 0, base, 4, 0, 0};
  EXPECT_EQ(run_draw(draw), 0u);
  EXPECT_EQ(*at<uint32_t>(0), 0x2090b348u);
  draw.output = base + kBytes - 8;
  EXPECT_EQ(run_draw(draw), 700u);
}

}  // namespace
}  // namespace heddle::software
