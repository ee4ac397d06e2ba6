#include "device/software/declared.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>

#include "image/fatbin_builder.h"

namespace heddle::software {
namespace {

constexpr uint64_t kGranule = MemoryMap::kGranule, kWindow = 4 * kGranule;

// Kernels of two words, a and b, of a module with variables counter and flag; the launch names two mapped ranges.
struct Declared : testing::Test {
  Declared() {
    void* reserved = mmap(nullptr, kWindow + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    window = Mapping(reserved, kWindow + kGranule);
    base = round_up(reinterpret_cast<uintptr_t>(reserved), kGranule);
    memory.emplace(*DeviceMemory::create(base, kWindow));
    mapped.add(base, kGranule, {});
    mapped.add(base + kGranule, kGranule, {});
  }
  DeclaredAccess declared(const std::string& body, bool read_effects = true) {
    const std::string fatbin =
        image::FatbinBuilder()
            .add(image::kFatbinPtx, 80,
                 ".version 9.0\n.target sm_80\n.address_size 64\n.global .u32 counter;\n.global .u32 flag;\n"
                 ".entry k(.param .u64 a, .param .u64 b) { .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
                 "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n" +
                     body + " ret; }\n")
            .build();
    auto loaded = Program::load(std::as_bytes(std::span(fatbin)), 90, *memory);
    EXPECT_TRUE(loaded) << loaded.error().text;
    program = std::move(*loaded);
    if (read_effects) program->read_effects(std::as_bytes(std::span(fatbin)), 90);
    auto kernel = program->kernel("k");
    EXPECT_TRUE(kernel) << kernel.error().text;
    std::array<std::byte, 16> block;
    std::memcpy(block.data(), words.data(), sizeof words);
    return declared_access(*program, **kernel, block, mapped);
  }
  uint64_t address_of(const char* variable) { return program->variable(variable)->address; }

  Mapping window;
  uint64_t base = 0;
  std::optional<DeviceMemory> memory;
  MappedRanges mapped;
  std::unique_ptr<Program> program;
  std::array<uint64_t, 2> words{};
};

TEST_F(Declared, AreTheRangesThatParametersLeadTo) {
  words = {base + 64, base + kGranule};
  const DeclaredAccess access = declared("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;");
  EXPECT_TRUE(access.permits_read(base, kGranule));
  EXPECT_FALSE(access.permits_write(base, 4));
  EXPECT_TRUE(access.permits_write(base + kGranule, kGranule));
  EXPECT_FALSE(access.permits_read(base + kGranule, 4));
  EXPECT_FALSE(access.permits_write(base + 2 * kGranule - 2, 4)) << "passes the end";
}

TEST_F(Declared, VariablesAreThoseThatTheCodeNamesOrAParameterPointsTo) {
  const DeclaredAccess named = declared("ld.global.u32 %r1, [flag]; red.global.add.u32 [counter], %r1;");
  EXPECT_TRUE(named.permits_write(address_of("counter"), 4));
  EXPECT_TRUE(named.permits_read(address_of("flag"), 4));
  EXPECT_FALSE(named.permits_write(address_of("flag"), 4));
  words[0] = address_of("flag");
  const auto first = program->variable("flag")->address;
  const DeclaredAccess pointed = declared("st.global.u32 [%rd1], 1;");
  // The module was loaded anew, its variables lie elsewhere: the word points to nothing of it.
  EXPECT_FALSE(pointed.permits_write(address_of("flag"), 4));
  EXPECT_FALSE(pointed.permits_write(first, 4));
}

TEST_F(Declared, EverythingWhereTheCodeFollowsAddressesOrIsUnknown) {
  const DeclaredAccess follows = declared("ld.global.u64 %rd3, [%rd1]; st.global.u32 [%rd3], 1;");
  EXPECT_TRUE(follows.permits_read(5, 1) && follows.permits_write(5, 1));
  const DeclaredAccess unknown = declared("st.global.u32 [%rd1], 1;", false);
  EXPECT_TRUE(unknown.permits_read(5, 1) && unknown.permits_write(5, 1));
}

// The assumptions of image/effects.h can be broken: an address that is multiplied counts as an index.
TEST_F(Declared, WhatEffectsMissIsNotPermitted) {
  words = {base, base + kGranule};
  const DeclaredAccess access = declared(
      "ld.global.u64 %rd3, [%rd1]; mul.lo.s64 %rd4, %rd3, 2; add.s64 %rd5, %rd4, %rd2; st.global.u32 [%rd5], 1;");
  EXPECT_TRUE(access.permits_write(base + kGranule, 4));
  EXPECT_FALSE(access.permits_write(base + 2 * kGranule, 4));
}

}  // namespace
}  // namespace heddle::software
