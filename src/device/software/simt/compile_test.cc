// What the compiler of kernels refuses, and how it says so; the layout it works out; the map of memory.

#include <gtest/gtest.h>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

std::string refusal(const std::string& body, const std::string& module_scope = "") {
  Machine machine;
  machine.load(".version 8.0\n.target sm_80\n.address_size 64\n" + module_scope +
               "\n.entry k(.param .u64 out) {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>; "
               ".reg .b16 %h<5>;\n" +
               body + "\nret; }\n");
  auto kernel = machine.compile("k");
  return kernel ? "" : kernel.error().text;
}

TEST(Refusal, NamesKernelLineAndInstruction) {
  EXPECT_EQ(refusal("\nwgmma.commit_group.sync.aligned;"),
            "kernel k: PTX line 8: 'wgmma.commit_group.sync.aligned' is not supported");
}

TEST(Refusal, CoversEverythingThatIsNotUnderstood) {
  for (const char* body : {
           "wgmma.fence.sync.aligned;",
           "add.s32 %r1, %r2;",
           "add.s32 %r1, %rd1, %r2;",
           "mov.u32 %r1, %no_such_register;",
           "mov.u64 %rd1, nowhere;",
           "ld.global.u32 %r1, [nowhere];",
           "ld.global.b128 %rd1, [%rd2];",
           "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
           "ld.weird.u32 %r1, [%rd1];",
           "ld.param.u64 %rd1, [out+4];",
           "st.param.u64 [out], %rd1;",
           "st.const.u32 [%rd1], %r1;",
           "shfl.up.b32 %r1, %r2, 1, 0;",
           "cvt.f16.f32 %h1, %f1;",
           "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [nowhere, {%f1, %f2}];",
           "call nowhere, ();",
           "call %rd1, ();",
           "call malloc, ();",
           "barrier.cluster.arrive;",
           "bar.sync;",
           "brx.idx %r1, %r2;",
           "atom.global.min.f32 %f1, [%rd1], %f2;",
           "cp.async.bulk.commit_group;",
           "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%rd2], 8;",
           "vadd.s32.s32.s32.min %r1, %r2, %r3, %r1;",
           "atom.local.add.u32 %r1, [%rd1], 1;",
           "mov.b64 {%r1, %r2, %r3}, %rd1;",
           "setp.lt.u32 %r1, %r2, %r3;",
           "fma.rn.f32 %f1, %f2, !%f3, %f2;",
           "add.s32 %r1, %r2, !3;",
           "set.lt.f64.f32 %r1, %f1, %f2;",
       })
    EXPECT_NE(refusal(body).find("is not supported"), std::string::npos) << body << " -> " << refusal(body);
}

// Clusters, TMA and kernels that launch kernels: by kernel, line and instruction.
TEST(Refusal, NamesWhatStaysOut) {
  const std::string launches = ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 buffer, .param .b64 s);\n";
  for (const char* body : {
           "barrier.cluster.arrive.release.aligned;",
           "barrier.cluster.wait.acquire.aligned;",
           "mapa.shared::cluster.u32 %r1, %r2, %r3;",
           "getctarank.shared::cluster.u32 %r1, %r2;",
           "ld.shared::cluster.u32 %r1, [%r2];",
           "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];",
           "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, "
           "%r3}], "
           "[%r4];",
           "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;",
           "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;",
           "call.uni (%r1), cudaLaunchDeviceV2, (%rd1, %rd2);",
       }) {
    const std::string instruction = std::string(body).substr(0, std::string(body).find_first_of(" ;"));
    EXPECT_EQ(refusal(body, launches).find("kernel k: PTX line 8: '" + instruction + "' is not supported"), 0u)
        << body << " -> " << refusal(body, launches);
  }
  EXPECT_NE(refusal("mov.u32 %r1, %cluster_ctaid.x;").find("%cluster_ctaid.x"), std::string::npos);
  EXPECT_NE(refusal("call.uni (%r1), cudaLaunchDeviceV2, (%rd1, %rd2);", launches).find("'cudaLaunchDeviceV2'"),
            std::string::npos);
}

TEST(Refusal, OfACalleeConcernsOnlyKernelsThatReachIt) {
  std::string functions = ".func bad() { wgmma.fence.sync.aligned; ret; }\n.func good() { ret; }\n";
  EXPECT_NE(refusal("call.uni bad, ();", functions), "");
  EXPECT_EQ(refusal("call.uni good, ();", functions), "");
}

TEST(Refusal, OfAKernelThatIsNotThere) {
  Machine machine;
  machine.load(".version 8.0\n.target sm_80\n.address_size 64\n.func f() { ret; }\n");
  EXPECT_EQ(machine.compile("f").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(machine.compile("absent").error().code, ErrorCode::kNotFound);
}

TEST(Layout, OfParametersSharedAndLocalMemory) {
  Machine machine;
  machine.load(
      ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 8 .b8 a[12];\n.shared .align 16 .b8 unused[64];\n"
      ".extern .shared .align 32 .b8 dynamic[];\n"
      ".func leaf() { .local .align 16 .b8 x[100]; ret; }\n"
      ".entry k(.param .u8 small, .param .align 16 .b8 s[20], .param .u64 p) .maxntid 64, 2, 1 {\n"
      ".local .align 8 .b8 y[24]; .shared .align 4 .b8 b[4]; .reg .b32 %r;\nmov.u32 %r, a; mov.u32 %r, dynamic;\n"
      "call.uni leaf, (); ret; }\n");
  auto kernel = machine.compile("k");
  ASSERT_TRUE(kernel.has_value()) << kernel.error().text;
  const CompiledKernel& k = **kernel;
  ASSERT_EQ(k.parameters.size(), 3u);
  EXPECT_EQ(k.parameters[1].offset, 16u);
  EXPECT_EQ(k.parameters[1].bytes, 20u);
  EXPECT_EQ(k.parameters[2].offset, 40u);
  EXPECT_EQ(k.parameter_bytes, 48u);
  EXPECT_EQ(k.static_shared, 4u + 4 + 12);
  EXPECT_EQ(k.dynamic_shared_offset, 32u);
  EXPECT_EQ(k.local_bytes, 32u + 128);
  EXPECT_FALSE(k.recursive);
  EXPECT_EQ(k.max_threads, 128u);
}

TEST(Layout, TellsRecursion) {
  Machine machine;
  machine.load(
      ".version 8.0\n.target sm_80\n.address_size 64\n.func b();\n.func a() { call.uni b, (); ret; }\n"
      ".func b() { call.uni a, (); ret; }\n.entry k() { call.uni a, (); ret; }\n");
  auto kernel = machine.compile("k");
  ASSERT_TRUE(kernel.has_value()) << kernel.error().text;
  EXPECT_TRUE((*kernel)->recursive);
  EXPECT_EQ(machine.run("k", {}).fault.cuda_error, kCudaHardwareStackError);
}

TEST(BlockShape, IsChecked) {
  Machine machine;
  machine.load(".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p) { ret; }\n");
  auto kernel = machine.compile("k");
  ASSERT_TRUE(kernel.has_value());
  std::byte parameters[8] = {};
  auto create = [&](Dim3 block, size_t bytes) {
    LaunchShape shape;
    shape.block = block;
    shape.parameters = std::span(parameters, bytes);
    return Block::create(**kernel, shape, machine.memory(), nullptr).has_value();
  };
  EXPECT_TRUE(create({1024, 1, 1}, 8));
  EXPECT_FALSE(create({1025, 1, 1}, 8));
  EXPECT_FALSE(create({0, 1, 1}, 8));
  EXPECT_FALSE(create({65536, 65536, 65536}, 8));
  EXPECT_FALSE(create({32, 1, 1}, 7));
}

TEST(MemoryMapTest, KnowsGranulesOfEveryWindow) {
  constexpr uint64_t kG = MemoryMap::kGranule, kBase = 1ull << 41;
  auto map = MemoryMap::create({{kBase, 1ull << 41}, {1ull << 30, 4 * kG}});
  ASSERT_TRUE(map.has_value()) << map.error().text;
  EXPECT_FALSE(map->contains(kBase, 1));
  ASSERT_TRUE(map->add(kBase + kG, 2 * kG).has_value());
  ASSERT_TRUE(map->add((1ull << 30) + kG, kG).has_value());
  EXPECT_TRUE(map->contains(kBase + kG, 2 * kG));
  EXPECT_FALSE(map->contains(kBase + kG, 2 * kG + 1));
  EXPECT_FALSE(map->contains(kBase + kG - 1, 2));
  EXPECT_TRUE(map->contains((1ull << 30) + 2 * kG - 8, 8));
  EXPECT_FALSE(map->contains(~0ull - 3, 8));
  ASSERT_TRUE(map->remove(kBase + kG, kG).has_value());
  EXPECT_FALSE(map->contains(kBase + kG, 1));
  EXPECT_TRUE(map->contains(kBase + 2 * kG, 1));
}

TEST(MemoryMapTest, RefusesWhatIsNotAlignedOrOutside) {
  constexpr uint64_t kG = MemoryMap::kGranule, kBase = 1ull << 41;
  auto map = MemoryMap::create({{kBase, 4 * kG}});
  ASSERT_TRUE(map.has_value());
  EXPECT_FALSE(map->add(kBase + 1, kG).has_value());
  EXPECT_FALSE(map->add(kBase, kG + 1).has_value());
  EXPECT_FALSE(map->add(kBase + 3 * kG, 2 * kG).has_value());
  EXPECT_FALSE(map->add(kBase - kG, kG).has_value());
  EXPECT_FALSE(MemoryMap::create({{1, kG}}).has_value());
}

}  // namespace
}  // namespace heddle::software
