// State spaces, vectors, widths, generic addresses, atomics, and the faults of bad addresses.

#include <sys/mman.h>

#include "device/software/simt/testing/instruction.h"

namespace heddle::software {
namespace {

using Progress = Block::Progress;

class Memory : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  // A kernel of one warp with %t the thread, %out the parameter `out`, %mine = out + 8 * thread.
  void load(const std::string& body, const std::string& module_scope = "") {
    machine_.load(".version 8.0\n.target sm_80\n.address_size 64\n" + module_scope +
                  "\n.entry k(.param .u64 out, .param .u64 in) {\n"
                  ".reg .b64 %rd<10>, %out, %in, %mine; .reg .b32 %r<10>, %t; .reg .b16 %h<5>; .reg .f32 %f<5>;\n"
                  ".reg .f64 %fd<3>; .reg .pred %p<3>;\n"
                  "ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; mov.u32 %t, %tid.x;\n"
                  "mul.wide.u32 %mine, %t, 8; add.u64 %mine, %mine, %out;\n" +
                  body + "\nret; }\n");
  }
  template <class T>
  std::vector<T> run(uint64_t in = 0, Dim3 block = {32, 1, 1}) {
    uint64_t out = machine_.allocate(8 * block.count());
    auto outcome = machine_.run("k", {.block = block, .dynamic_shared = 256}, out, in);
    EXPECT_EQ(outcome.progress, Progress::kFinished) << outcome.refusal << outcome.fault.text;
    return machine_.get<T>(out, 8 * block.count() / sizeof(T));
  }
  Machine::Outcome faulting(uint64_t out, uint64_t in = 0) {
    return machine_.run("k", {.dynamic_shared = 256}, out, in);
  }
  Machine machine_{*GetParam()};
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Memory, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

TEST_P(Memory, ALoadExtendsToTheWholeRegister) {
  load("ld.global.s32 %rd1, [%in]; st.global.u64 [%mine], %rd1;");
  EXPECT_EQ(run<int64_t>(machine_.put(std::vector<int32_t>{-5}))[31], -5);
  load("ld.global.u16 %rd1, [%in]; st.global.u64 [%mine], %rd1;");
  EXPECT_EQ(run<int64_t>(machine_.put(std::vector<int16_t>{-5}))[31], 65531);
  load("ld.global.s8 %r1, [%in]; cvt.s64.s32 %rd1, %r1; st.global.u64 [%mine], %rd1;");
  EXPECT_EQ(run<int64_t>(machine_.put(std::vector<int8_t>{-5}))[31], -5);
}

TEST_P(Memory, AStoreTakesTheLowPartOfTheRegister) {
  load(
      "mov.u64 %rd1, 0x1122334455667788; st.global.u64 [%mine], 0; st.global.u16 [%mine], %rd1; st.global.u8 "
      "[%mine+4], %rd1;");
  EXPECT_EQ(run<uint64_t>()[7], 0x0000008800007788u);
}

TEST_P(Memory, VectorsOfTwoAndFour) {
  std::vector<float> in(128);
  for (int i = 0; i < 128; ++i) in[i] = static_cast<float>(i);
  load(
      "mul.wide.u32 %rd1, %t, 16; add.u64 %rd1, %rd1, %in; ld.global.v4.f32 {%f1, %f2, _, %f3}, [%rd1];\n"
      "add.f32 %f2, %f2, %f3; st.global.v2.f32 [%mine], {%f1, %f2};");
  auto result = run<float>(machine_.put(in));
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ(result[2 * t], in[4 * t]);
    EXPECT_EQ(result[2 * t + 1], in[4 * t + 1] + in[4 * t + 3]);
  }
}

TEST_P(Memory, LanesMayReadInAnyOrder) {
  std::vector<uint32_t> in(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = 100 + i;
  load(
      "sub.u32 %r1, 31, %t; setp.gt.u32 %p1, %t, 20; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, %in;\n"
      "mov.u64 %rd2, 7; st.global.u64 [%mine], %rd2; @%p1 ld.global.u32 %r2, [%rd1]; @%p1 st.global.u32 [%mine], %r2;");
  auto result = run<uint64_t>(machine_.put(in));
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(result[t], t > 20 ? 100 + 31 - t : 7u) << t;
}

TEST_P(Memory, SharedStaticAndDynamicDoNotOverlap) {
  load(
      "mov.u32 %r1, fixed; mov.u32 %r2, dynamic; mad.lo.u32 %r1, %t, 4, %r1; mad.lo.u32 %r2, %t, 4, %r2;\n"
      "st.shared.u32 [%r1], %t; add.u32 %r3, %t, 1000; st.shared.u32 [%r2], %r3; bar.sync 0;\n"
      "ld.shared.u32 %r4, [%r1]; ld.shared.u32 %r5, [%r2]; st.global.v2.u32 [%mine], {%r4, %r5};",
      ".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 fixed[128];\n");
  auto result = run<uint32_t>();
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(result[2 * t], t);
    EXPECT_EQ(result[2 * t + 1], 1000 + t);
  }
}

TEST_P(Memory, SharedAddressesWrapAt32Bits) {
  load(
      "mov.u64 %rd1, fixed; add.u64 %rd1, %rd1, 0x100000000; st.shared.u32 [%rd1+4], 9; ld.shared.u32 %r1, [fixed+4];\n"
      "mov.u32 %r2, fixed; add.u32 %r2, %r2, -4; ld.shared.u32 %r3, [%r2+8]; st.global.v2.u32 [%mine], {%r1, %r3};",
      ".shared .align 4 .b8 fixed[128];\n");
  auto result = run<uint32_t>();
  EXPECT_EQ(result[0], 9u);
  EXPECT_EQ(result[1], 9u);
}

TEST_P(Memory, GenericAddressesReachEverySpace) {
  load(
      ".local .align 8 .b8 mine_only[16]; cvta.shared.u64 %rd1, fixed; cvta.local.u64 %rd2, mine_only;\n"
      "mul.wide.u32 %rd3, %t, 4; add.u64 %rd4, %rd1, %rd3; st.u32 [%rd4], %t;\n"
      "add.u32 %r1, %t, 50; st.u32 [%rd2+8], %r1; bar.sync 0;\n"
      "setp.lt.u32 %p1, %t, 16; selp.b64 %rd5, %rd4, %rd2, %p1; @!%p1 add.u64 %rd5, %rd5, 8;\n"
      "ld.u32 %r2, [%rd5]; cvta.to.shared.u64 %rd6, %rd4; ld.shared.u32 %r3, [%rd6]; st.v2.u32 [%mine], {%r2, %r3};",
      ".shared .align 4 .b8 fixed[128];\n");
  auto result = run<uint32_t>();
  for (uint32_t t = 0; t < 32; ++t) {
    EXPECT_EQ(result[2 * t], t < 16 ? t : t + 50) << t;
    EXPECT_EQ(result[2 * t + 1], t);
  }
}

TEST_P(Memory, IsspacepTellsTheSpaces) {
  load(
      ".local .align 8 .b8 mine_only[16]; cvta.shared.u64 %rd1, fixed; cvta.local.u64 %rd2, mine_only; mov.u32 %r1, "
      "0;\n"
      "isspacep.shared %p1, %rd1; @%p1 add.u32 %r1, %r1, 1; isspacep.local %p1, %rd2; @%p1 add.u32 %r1, %r1, 2;\n"
      "isspacep.global %p1, %out; @%p1 add.u32 %r1, %r1, 4; isspacep.global %p1, %rd1; @%p1 add.u32 %r1, %r1, 8;\n"
      "cvt.u64.u32 %rd3, %r1; st.global.u64 [%mine], %rd3;",
      ".shared .align 4 .b8 fixed[128];\n");
  EXPECT_EQ(run<uint64_t>()[0], 7u);
}

TEST_P(Memory, ParametersByAddressAndByIndex) {
  load(
      "mov.b64 %rd1, in; ld.param.u64 %rd2, [%rd1]; ld.param.u32 %r1, [in+4]; add.u64 %rd3, %rd2, 1;\n"
      "cvt.u64.u32 %rd4, %r1; add.u64 %rd3, %rd3, %rd4; st.global.u64 [%mine], %rd3;");
  EXPECT_EQ(run<uint64_t>(0x200000003)[5], 0x200000003u + 1 + 2);
}

TEST_P(Memory, AtomicsOfEveryOperation) {
  load(
      "atom.global.add.u32 %r1, [%in], 1; red.global.max.s32 [%in+4], %r1; atom.min.u32 %r2, [%in+8], %t;\n"
      "red.global.or.b32 [%in+12], 6; atom.global.and.b32 %r2, [%in+16], 12; atom.xor.b32 %r2, [%in+20], %t;\n"
      "atom.global.inc.u32 %r2, [%in+24], 9; atom.global.dec.u32 %r2, [%in+28], 9; cvt.rn.f32.u32 %f1, %t;\n"
      "red.global.add.f32 [%in+32], %f1; cvt.rn.f64.u32 %fd1, %t; atom.global.add.f64 %fd2, [%in+40], %fd1;\n"
      "atom.global.cas.b32 %r3, [%in+48], 31, 77; atom.global.exch.b32 %r4, [%in+52], %t; "
      "red.relaxed.gpu.global.add.u64 [%in+56], 3;\n"
      "cvt.u64.u32 %rd1, %r1; st.global.u64 [%mine], %rd1;");
  std::vector<uint32_t> in = {100, 0, 1000, 1, 14, 0, 8, 2, 0, 0, 0, 0, 31, 5, 0, 0};
  uint64_t at = machine_.put(in);
  auto old = run<uint64_t>(at);
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(old[t], 100 + t);
  auto out = machine_.get<uint32_t>(at, 16);
  EXPECT_EQ(out[0], 132u);
  EXPECT_EQ(out[1], 131u);
  EXPECT_EQ(out[2], 0u);
  EXPECT_EQ(out[3], 7u);
  EXPECT_EQ(out[4], 12u);
  EXPECT_EQ(out[5], 0u);
  EXPECT_EQ(out[6], 0u);  // 8, 9, 0, 1, ...: the 32nd step of a counter of ten that began at 8
  EXPECT_EQ(out[7], 0u);  // 2, 1, 0, 9, 8, ...
  EXPECT_EQ(std::bit_cast<float>(out[8]), 496.0f);
  EXPECT_EQ(machine_.get<double>(at + 40, 1)[0], 496.0);
  EXPECT_EQ(out[12], 77u);
  EXPECT_EQ(out[13], 31u);
  EXPECT_EQ(machine_.get<uint64_t>(at + 56, 1)[0], 96u);
}

TEST_P(Memory, AtomicSumsOfHalves) {
  load(
      "mov.b16 %h1, 0x3C00; mov.b32 %r1, 0x40003C00; atom.global.add.noftz.f16 %h2, [%in], %h1;\n"
      "red.global.add.noftz.f16x2 [%in+4], %r1; atom.add.noftz.bf16x2 %r2, [%in+8], 0x3F803F80; st.global.u32 [%mine], "
      "%r2;");
  uint64_t at = machine_.put(std::vector<uint32_t>(4, 0));
  run<uint32_t>(at);
  EXPECT_EQ(machine_.get<uint32_t>(at, 3), (std::vector<uint32_t>{0x5000, 0x54005000, 0x42004200}));
}

TEST_P(Memory, SharedAtomicsCountEveryLane) {
  load(
      "atom.shared.add.u32 %r1, [fixed], 2; bar.sync 0; ld.shared.u32 %r2, [fixed]; st.global.v2.u32 [%mine], {%r1, "
      "%r2};",
      ".shared .align 4 .u32 fixed;\n");
  auto result = run<uint32_t>(0, {64, 1, 1});
  for (uint32_t t = 0; t < 64; ++t) {
    EXPECT_EQ(result[2 * t], 2 * t);
    EXPECT_EQ(result[2 * t + 1], 128u);
  }
}

TEST_P(Memory, AFaultingStoreOfOneLaneStopsTheBlock) {
  load("setp.eq.u32 %p1, %t, 13; @%p1 mov.u64 %mine, 64; st.global.u64 [%mine], %mine;");
  auto outcome = faulting(machine_.allocate(256));
  EXPECT_EQ(outcome.fault.cuda_error, kCudaIllegalAddress);
  EXPECT_NE(outcome.fault.text.find("illegal write of 8 bytes at 0x40"), std::string::npos) << outcome.fault.text;
  EXPECT_NE(outcome.fault.text.find("thread 13,0,0"), std::string::npos) << outcome.fault.text;
}

TEST_P(Memory, AVectorMustBeAlignedAsAWhole) {
  load("ld.global.v2.u32 {%r1, %r2}, [%in+4];");
  EXPECT_EQ(faulting(machine_.allocate(256), machine_.allocate(64)).fault.cuda_error, kCudaMisalignedAddress);
}

TEST_P(Memory, EverySpaceHasItsEnd) {
  for (const char* access :
       {"ld.shared.u32 %r1, [fixed+384];", "ld.shared.u32 %r1, [4294967292];", "ld.local.u32 %r1, [mine_only+16];",
        "mov.u64 %rd1, 281474976711680; ld.u32 %r1, [%rd1];", "ld.global.u32 %r1, [18446744073709551612];",
        "mov.u64 %rd1, 16; ld.param.u32 %r1, [%rd1];", "cvta.param.u64 %rd1, in; st.u32 [%rd1], %t;",
        "atom.global.add.u32 %r1, [4096], 1;"}) {
    load(std::string(".local .align 8 .b8 mine_only[16];\n") + access, ".shared .align 4 .b8 fixed[128];\n");
    auto outcome = faulting(machine_.allocate(256));
    EXPECT_EQ(outcome.fault.cuda_error, kCudaIllegalAddress) << access << outcome.refusal << outcome.fault.text;
  }
}

TEST_P(Memory, ReadsJustBesideMemoryFindZerosAndWritesFault) {
  // Programs read a row before their array, which the drivers' large pieces of memory allow.
  uint64_t first = machine_.allocate(256) / MemoryMap::kGranule * MemoryMap::kGranule;
  while (machine_.memory().contains(first - 1, 1)) first -= MemoryMap::kGranule;
  load("ld.global.v2.u32 {%r1, %r2}, [%in]; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, 7; st.global.u32 [%mine], %r1;");
  EXPECT_EQ(run<uint32_t>(first - 8)[0], 7u);
  EXPECT_EQ(run<uint32_t>(first + Machine::kMemory)[0], 7u);
  EXPECT_EQ(faulting(machine_.allocate(256), first - MemoryMap::kGranule - 8).fault.cuda_error, kCudaIllegalAddress);
  load("st.global.u32 [%in], %t;");
  EXPECT_EQ(faulting(0, first - 8).fault.cuda_error, kCudaIllegalAddress);
  load("atom.global.add.u32 %r1, [%in], %t;");
  EXPECT_EQ(faulting(0, first - 8).fault.cuda_error, kCudaIllegalAddress);
}

TEST_P(Memory, ASpanAcrossUnmappedMemoryIsCheckedLaneByLane) {
  // Lanes 0 and 31 lie in two windows' worth of mapped memory with a gap between them that nobody touches.
  uint64_t bytes = 4 * MemoryMap::kGranule;
  auto arena = reserve_addresses(0x7e0000000000, Bytes{bytes});
  if (!arena) GTEST_SKIP() << arena.error().text;
  ASSERT_EQ(mprotect(arena->data(), bytes, PROT_READ | PROT_WRITE), 0);
  auto base = reinterpret_cast<uint64_t>(arena->data());
  auto map = MemoryMap::create({{base, bytes}});
  ASSERT_TRUE(map.has_value());
  ASSERT_TRUE(map->add(base, MemoryMap::kGranule).has_value());
  ASSERT_TRUE(map->add(base + 3 * MemoryMap::kGranule, MemoryMap::kGranule).has_value());
  load("setp.lt.u32 %p1, %t, 31; @!%p1 add.u64 %out, %out, %in; st.global.u32 [%out], %t;");
  auto kernel = machine_.compile("k");
  ASSERT_TRUE(kernel.has_value()) << kernel.error().text;
  auto run_with = [&](uint64_t distance) {
    const uint64_t parameters[] = {base, distance};
    LaunchShape shape;
    shape.block = {32, 1, 1};
    shape.parameters = std::as_bytes(std::span(parameters));
    auto block = Block::create(**kernel, shape, *map, nullptr);
    EXPECT_TRUE(block.has_value());
    (*block)->start({}, 0);
    return (*block)->run(1000);
  };
  EXPECT_EQ(run_with(3 * MemoryMap::kGranule), Progress::kFinished);
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(base + 3 * MemoryMap::kGranule), 31u);
  EXPECT_EQ(run_with(2 * MemoryMap::kGranule), Progress::kFaulted);
}

}  // namespace
}  // namespace heddle::software
