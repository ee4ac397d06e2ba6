#include "image/effects.h"

#include <gtest/gtest.h>

namespace heddle::image {
namespace {

std::string unit_of(const std::string& statements) {
  return ".version 9.0\n.target sm_80\n.address_size 64\n" + statements;
}

std::vector<KernelEffects> effects_in(const std::string& statements) {
  const std::string text = unit_of(statements);
  const std::string_view unit = text;
  auto found = effects_of_ptx({&unit, 1});
  EXPECT_TRUE(found) << found.error().text;
  return found ? *found : std::vector<KernelEffects>(1);
}

// A kernel of three words, a, b and c, which are in %rd1 to %rd3.
KernelEffects kernel(const std::string& body, const std::string& before = "") {
  return effects_in(before + ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{\n" +
                    "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\nld.param.u64 %rd3, [c];\n" + body +
                    "\nret;\n}\n")
      .back();
}

TEST(Effects, AStoreThroughAParameterWritesThatOneOnly) {
  const KernelEffects k = kernel(R"(
	cvta.to.global.u64 %rd4, %rd1;
	cvta.to.global.u64 %rd5, %rd2;
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd6, %r1, 4;
	add.s64 %rd7, %rd4, %rd6;
	add.s64 %rd8, %rd5, %rd6;
	ld.global.f32 %f1, [%rd7];
	st.global.f32 [%rd8], %f1;)");
  EXPECT_FALSE(k.may_write(0));
  EXPECT_TRUE(k.may_write(1));
  EXPECT_FALSE(k.may_write(2));
  EXPECT_FALSE(k.keeps_addresses());
  EXPECT_FALSE(k.follows_memory);
  EXPECT_EQ(k.unknown, "");
}

TEST(Effects, AnIndexFromMemoryIsNoAddress) {
  const KernelEffects k = kernel(R"(
	ld.global.u32 %r1, [%rd1];
	mul.wide.s32 %rd4, %r1, 8;
	add.s64 %rd5, %rd2, %rd4;
	ld.global.u64 %rd6, [%rd5];
	shl.b64 %rd7, %rd6, 3;
	add.s64 %rd8, %rd3, %rd7;
	st.global.f64 [%rd8], %fd1;)");
  EXPECT_FALSE(k.follows_memory);
  EXPECT_FALSE(k.writes_anything);
  EXPECT_FALSE(k.may_write(1));
  EXPECT_TRUE(k.may_write(2));
}

TEST(Effects, AnAddressFromMemoryThatIsFollowedReachesAnything) {
  const KernelEffects reads = kernel("ld.global.u64 %rd4, [%rd1];\nld.global.f32 %f1, [%rd4+8];");
  EXPECT_TRUE(reads.follows_memory);
  EXPECT_FALSE(reads.writes_anything);
  const KernelEffects writes = kernel("ld.global.u64 %rd4, [%rd1];\nst.global.f32 [%rd4+8], %f1;");
  EXPECT_TRUE(writes.writes_anything);
  EXPECT_TRUE(writes.may_write(2));
  EXPECT_FALSE(writes.keeps_addresses());
}

TEST(Effects, ATextureMayLieInAnyBuffer) {
  const KernelEffects reads = kernel("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];");
  EXPECT_TRUE(reads.follows_memory);
  EXPECT_FALSE(reads.writes_anything);
  EXPECT_EQ(reads.unknown, "");
  EXPECT_TRUE(kernel("suld.b.1d.b32.trap {%r1}, [%rd1, {%r2}];").follows_memory);
  EXPECT_TRUE(kernel("sust.b.1d.b32.trap [%rd1, {%r2}], {%r1};").writes_anything);
}

TEST(Effects, AnAddressPutTogetherFromHalvesIsAnAddress) {
  EXPECT_TRUE(kernel("ld.global.v2.u32 {%r1, %r2}, [%rd1];\nmov.b64 %rd4, {%r1, %r2};\nld.global.f32 %f1, [%rd4];")
                  .follows_memory);
  EXPECT_TRUE(kernel(R"(
	ld.global.u32 %r1, [%rd1];
	ld.global.u32 %r2, [%rd1+4];
	cvt.u64.u32 %rd4, %r1;
	cvt.u64.u32 %rd5, %r2;
	shl.b64 %rd6, %rd5, 32;
	or.b64 %rd7, %rd6, %rd4;
	st.u32 [%rd7], %r1;)")
                  .writes_anything);
}

TEST(Effects, AStoredAddressIsKept) {
  const KernelEffects stored = kernel("add.s64 %rd4, %rd2, 64;\nst.global.u64 [%rd1], %rd4;");
  EXPECT_TRUE(stored.may_keep(1));
  EXPECT_FALSE(stored.may_keep(0));
  EXPECT_TRUE(kernel("atom.global.exch.b64 %rd4, [%rd1], %rd3;").may_keep(2));
  EXPECT_TRUE(kernel("mov.b64 {%r1, %r2}, %rd2;\nst.global.v2.u32 [%rd1], {%r1, %r2};").may_keep(1));
  EXPECT_TRUE(kernel("st.global.u64 [list], %rd1;", ".global .u64 list;\n").may_keep(0));
  EXPECT_FALSE(kernel("st.global.u64 [list], %rd1;", ".global .u64 list;\n").writes_anything);
}

TEST(Effects, WhatGoesThroughSharedMemoryIsNotLost) {
  const std::string shared = ".shared .align 8 .b8 words[64];\n";
  const KernelEffects k = kernel(R"(
	st.shared.u64 [words], %rd2;
	mov.u64 %rd4, words;
	cvta.shared.u64 %rd5, %rd4;
	ld.u64 %rd6, [%rd5];
	st.global.f32 [%rd6], %f1;)",
                                 shared);
  EXPECT_TRUE(k.may_write(1));
  EXPECT_FALSE(k.may_write(0));
  EXPECT_FALSE(k.writes_anything);
  EXPECT_FALSE(k.keeps_addresses());
}

TEST(Effects, ConstantMemoryMayHoldAddresses) {
  const std::string constant = ".const .align 8 .u64 table;\n";
  EXPECT_TRUE(kernel("ld.const.u64 %rd4, [table];\nst.global.u32 [%rd4], %r1;", constant).writes_anything);
  EXPECT_FALSE(kernel("ld.const.u32 %r4, [table];\nst.global.u32 [%rd1], %r4;", constant).follows_memory);
}

TEST(Effects, DynamicSharedMemoryIsTheKernelsOwn) {
  const KernelEffects k = kernel(
      "mov.u32 %r1, dynamic;\ncvt.u64.u32 %rd4, %r1;\ncvta.shared.u64 %rd5, %rd4;\n"
      "st.u32 [%rd5], %r2;",
      ".extern .shared .align 16 .b8 dynamic[];\n");
  EXPECT_FALSE(k.writes_anything);
  EXPECT_FALSE(k.follows_memory);
}

TEST(Effects, AtomicsAndReductionsWrite) {
  EXPECT_TRUE(kernel("red.global.add.u32 [%rd1], %r1;").may_write(0));
  EXPECT_TRUE(kernel("atom.add.u32 %r1, [%rd2], 1;").may_write(1));
  EXPECT_FALSE(kernel("atom.shared.add.u32 %r1, [words], 1;", ".shared .b32 words;\n").may_write(0));
}

constexpr const char* kCallees = R"(
.func (.param .b64 result) next(.param .b64 from, .param .b64 to)
{
	ld.param.u64 %rd1, [from];
	ld.param.u64 %rd2, [to];
	ld.global.u32 %r1, [%rd1];
	st.global.u32 [%rd2], %r1;
	add.s64 %rd3, %rd1, 4;
	st.param.b64 [result], %rd3;
	ret;
}
)";

TEST(Effects, CallsArePassedThroughBothWays) {
  const KernelEffects k = kernel(R"(
	{ // callseq 0
	.param .b64 param0;
	st.param.b64 [param0], %rd1;
	.param .b64 param1;
	st.param.b64 [param1], %rd2;
	.param .b64 retval0;
	call.uni (retval0), next, (param0, param1);
	ld.param.b64 %rd5, [retval0];
	}
	st.global.u64 [%rd3], %rd5;)",
                                 kCallees);
  EXPECT_EQ(k.unknown, "");
  EXPECT_FALSE(k.may_write(0));
  EXPECT_TRUE(k.may_write(1));
  EXPECT_TRUE(k.may_write(2));
  EXPECT_TRUE(k.may_keep(0));
  EXPECT_FALSE(k.may_keep(1));
}

TEST(Effects, WhatIsNotKnownIsEverything) {
  for (const char* body : {"call (retval0), %rd1, (param0), prototype_0;", "call.uni nobody, ();",
                           "frobnicate.b64 %rd1, %rd2;", "sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};"}) {
    const KernelEffects k = kernel(body);
    EXPECT_NE(k.unknown, "") << body;
    EXPECT_TRUE(k.may_read(2) && k.may_write(2) && k.may_keep(2) && k.follows_memory && k.writes_anything) << body;
    EXPECT_TRUE(k.keeps_module_addresses && k.atomics && k.observes && !k.is_repeatable()) << body;
  }
  EXPECT_EQ(kernel("call.uni (retval0), vprintf, (param0, param1);").unknown, "");
}

TEST(Effects, AStructByValueIsOneParameter) {
  const auto found = effects_in(R"(.entry k(.param .align 8 .b8 s[24])
{
	ld.param.u64 %rd1, [s+8];
	st.global.u32 [%rd1], %r1;
	mov.b64 %rd2, s;
	cvta.param.u64 %rd3, %rd2;
	ret;
})");
  EXPECT_TRUE(found.back().may_write(0));
  EXPECT_FALSE(found.back().writes_anything);
}

TEST(Effects, ParametersBehindTheSixtyThirdShareABit) {
  EXPECT_EQ(KernelEffects::bit_of(62), 62u);
  EXPECT_EQ(KernelEffects::bit_of(63), 63u);
  EXPECT_EQ(KernelEffects::bit_of(500), 63u);
}

TEST(Effects, TellsWhatItAccessesFromWhatItOnlyComputesWith) {
  const KernelEffects k = kernel(R"(
	cvta.to.global.u64 %rd4, %rd1;
	cvta.to.global.u64 %rd5, %rd2;
	ld.global.f32 %f1, [%rd5];
	st.global.f32 [%rd4], %f1;
	add.s64 %rd6, %rd3, 1;
	setp.eq.s64 %p1, %rd6, 0;)");
  EXPECT_EQ(k.accessed, 0b011u);
  EXPECT_EQ(k.written, 0b001u);
  EXPECT_FALSE(k.touches_variables);
}

TEST(Effects, TellsReadsFromWrites) {
  const KernelEffects k =
      kernel("ld.global.f32 %f1, [%rd2];\nst.global.f32 [%rd1], %f1;\nred.global.add.f32 [%rd3], %f1;");
  EXPECT_EQ(k.read, 0b110u);
  EXPECT_EQ(k.written, 0b101u);
  EXPECT_FALSE(k.may_read(0));
  EXPECT_TRUE(k.may_read(2));
  EXPECT_FALSE(k.may_read_anything());
  EXPECT_TRUE(kernel("ld.global.u64 %rd4, [%rd1];\nld.global.f32 %f1, [%rd4];").may_read(2));
  EXPECT_EQ(kernel("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2}, [%rd2], %r3;").read, 0b010u);
  EXPECT_EQ(kernel("cp.async.ca.shared.global [tile], [%rd3], 16;", ".shared .b64 tile[2];\n").read, 0b100u);
}

TEST(Effects, TellsAtomicsThatReturnSomethingFromReductions) {
  const KernelEffects atomic = kernel("atom.global.add.u32 %r1, [%rd1], 1;\nst.global.u32 [%rd2], %r1;");
  EXPECT_TRUE(atomic.atomics);
  EXPECT_FALSE(atomic.reductions);
  EXPECT_FALSE(atomic.is_repeatable());
  EXPECT_EQ(atomic.read, 0b001u);
  // Slots that are dealt out in shared memory may be those of a list elsewhere.
  EXPECT_TRUE(kernel("atom.shared.inc.u32 %r1, [next], 64;\nadd.u32 %r2, %r1, 1;", ".shared .u32 next;\n").atomics);
  const KernelEffects reduction = kernel("red.global.add.u32 [%rd1], 1;");
  EXPECT_FALSE(reduction.atomics);
  EXPECT_TRUE(reduction.reductions);
  EXPECT_TRUE(reduction.is_repeatable());
  EXPECT_FALSE(reduction.unordered);
  EXPECT_FALSE(kernel("red.global.max.f32 [%rd1], %f1;").unordered);
  for (const char* body : {"red.global.add.f32 [%rd1], %f1;", "red.global.add.noftz.f16x2 [%rd1], %r1;",
                           "atom.global.exch.b32 %r1, [%rd1], 5;", "atom.global.cas.b32 %r1, [%rd1], 5, 6;"})
    EXPECT_TRUE(kernel(body).unordered) << body;
  const KernelEffects ignored = kernel("atom.global.add.u32 %r1, [%rd1], 1;\natom.global.add.u32 _, [%rd1], 1;");
  EXPECT_FALSE(ignored.atomics);
  EXPECT_TRUE(ignored.reductions);
}

TEST(Effects, WhatSeesTimeOrOthersCannotBeRepeated) {
  for (const char* body :
       {"ld.volatile.global.u32 %r1, [%rd1];", "ld.acquire.gpu.u32 %r1, [%rd1];",
        "ld.relaxed.sys.global.u32 %r1, [%rd1];", "ld.volatile.shared.u32 %r1, [%r2];", "mov.u64 %rd4, %clock64;",
        "mov.u32 %r1, %clock;", "mov.u64 %rd4, %globaltimer;", "mov.u32 %r1, %globaltimer_lo;", "mov.u32 %r1, %smid;",
        "mov.u32 %r1, %warpid;", "activemask.b32 %r1;", "nanosleep.u32 100;", "membar.gl;", "fence.acq_rel.sys;",
        "fence.sc.gpu;", "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;"}) {
    const KernelEffects k = kernel(body);
    EXPECT_TRUE(k.observes) << body;
    EXPECT_FALSE(k.is_repeatable()) << body;
    EXPECT_EQ(k.unknown, "") << body;
  }
  for (const char* body :
       {"ld.global.nc.u32 %r1, [%rd1];", "ld.volatile.local.u32 %r1, [%r2];", "bar.sync 0;", "barrier.sync 0;",
        "membar.cta;", "fence.acq_rel.cta;", "fence.proxy.async;", "mov.u32 %r1, %laneid;", "mov.u32 %r1, %nsmid;",
        "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "vote.sync.ballot.b32 %r1, %p1, -1;"}) {
    EXPECT_FALSE(kernel(body).observes) << body;
  }
}

TEST(Effects, WhatTheDriverHandsOverIsNoParameters) {
  const KernelEffects k = kernel(R"(
	mov.u32 %r1, %envreg2;
	mov.u32 %r2, %envreg1;
	mov.b64 %rd4, {%r1, %r2};
	add.s64 %rd5, %rd4, %rd3;
	st.global.u32 [%rd5], 1;)");
  EXPECT_TRUE(k.writes_anything);
}

TEST(Effects, SaysWhichVariablesAreReadAndWritten) {
  const std::string variables =
      ".global .u32 counter;\n.const .b8 table[64];\n.global .u32 flag;\n.global .u32 unused;\n.shared .u32 own;\n";
  const KernelEffects k = kernel(R"(
	ld.const.u32 %r1, [table+4];
	mov.u64 %rd4, counter;
	cvta.global.u64 %rd5, %rd4;
	red.add.u32 [%rd5], %r1;
	st.shared.u32 [own], %r1;
	st.global.u32 [flag], %r1;)",
                                 variables);
  EXPECT_EQ(k.variables,
            (std::vector<VariableUse>{{"table", true, false}, {"counter", true, true}, {"flag", false, true}}));
  EXPECT_FALSE(k.keeps_module_addresses);
  EXPECT_FALSE(k.follows_memory);
}

TEST(Effects, ConstantMemoryAtAnUnknownPlaceIsAnyVariable) {
  EXPECT_TRUE(kernel("ld.const.u32 %r1, [%rd1];", ".const .b8 table[64];\n").may_read_anything());
}

TEST(Effects, AddressesOfTheModuleMayGetOut) {
  const std::string variables = ".global .u32 counter;\n.func helper()\n{\nret;\n}\n";
  EXPECT_TRUE(kernel("mov.u64 %rd4, counter;\nst.global.u64 [%rd1], %rd4;", variables).keeps_module_addresses);
  EXPECT_TRUE(kernel("mov.u64 %rd4, counter;\ncvt.u32.u64 %r1, %rd4;\nst.global.u32 [%rd1], %r1;", variables)
                  .keeps_module_addresses);
  EXPECT_TRUE(kernel("mov.u64 %rd4, helper;\nst.global.u64 [%rd1], %rd4;", variables).keeps_module_addresses);
  EXPECT_TRUE(kernel("ld.global.u64 %rd4, [text];\nst.global.u64 [%rd1], %rd4;",
                     variables + ".global .u64 text = generic(counter);\n")
                  .keeps_module_addresses);
  EXPECT_FALSE(kernel("ld.global.u64 %rd4, [text];\nst.global.u64 [%rd1], %rd4;", ".global .u64 text = 5;\n")
                   .keeps_module_addresses);
  // One that stays in shared memory ends with the kernel.
  EXPECT_FALSE(kernel("mov.u64 %rd4, counter;\nst.shared.u64 [own], %rd4;", variables + ".shared .u64 own;\n")
                   .keeps_module_addresses);
}

TEST(Effects, WhatIsPrintedIsRead) {
  const std::string text = ".global .b8 text[4] = {37, 115, 10, 0};\n";
  const std::string call = R"(
	mov.u64 %rd4, text;
	cvta.global.u64 %rd5, %rd4;
	mov.u64 %rd6, arguments;
	{ .param .b64 param0; st.param.b64 [param0], %rd5;
	.param .b64 param1; st.param.b64 [param1], %rd6;
	.param .b32 retval0;
	call.uni (retval0), vprintf, (param0, param1); })";
  const std::string local = "\t.local .b64 arguments;\n";
  const KernelEffects k = kernel(local + "st.local.u64 [arguments], %rd2;" + call, text);
  EXPECT_EQ(k.read, 0b010u);
  EXPECT_EQ(k.variables, (std::vector<VariableUse>{{"text", true, false}}));
  EXPECT_FALSE(k.may_read_anything());
  EXPECT_TRUE(
      kernel(local + "ld.global.u64 %rd7, [%rd1];\nst.local.u64 [arguments], %rd7;" + call, text).may_read_anything());
}

TEST(Effects, DeviceMallocIsToldThoughWhatItDoesIsUnknown) {
  const std::string declared = ".extern .func (.param .b64 result) malloc(.param .b64 size);\n";
  const KernelEffects k = kernel("call.uni (retval0), malloc, (param0);", declared);
  EXPECT_TRUE(k.allocates);
  EXPECT_NE(k.unknown, "");
  EXPECT_FALSE(kernel("ret;", declared).allocates);
  // Who knows what a pointer calls; nobody allocates where nothing declares it.
  EXPECT_TRUE(kernel("call (retval0), %rd1, (param0), prototype_0;", declared).allocates);
  EXPECT_FALSE(kernel("call (retval0), %rd1, (param0), prototype_0;").allocates);
}

TEST(Effects, AnAddressInAPackedStructMayLieAtAnyByte) {
  const auto packed = [](const std::string& body) {
    return effects_in(".entry k(.param .align 1 .b8 s[16], .param .u32 low, .param .u32 high)\n{\n" + body +
                      "ret;\n}\n")
        .back();
  };
  const KernelEffects halves = packed(
      "ld.param.u32 %r1, [s+4];\nld.param.u32 %r2, [s+8];\nmov.b64 %rd1, {%r1, %r2};\nst.global.u32 [%rd1], 1;\n");
  EXPECT_EQ(halves.written, 0b001u);
  EXPECT_EQ(halves.in_pieces, 0b001u);
  EXPECT_FALSE(halves.writes_anything);
  EXPECT_EQ(packed("ld.param.u64 %rd1, [s];\nld.param.s32 %r1, [s+8];\nmul.wide.s32 %rd2, %r1, 4;\n"
                   "add.s64 %rd3, %rd1, %rd2;\nst.global.u32 [%rd3], 1;\n")
                .in_pieces,
            0u);
  // Two parameters that hold no address each.
  EXPECT_TRUE(packed("ld.param.u32 %r1, [low];\nld.param.u32 %r2, [high];\nmov.b64 %rd1, {%r1, %r2};\n"
                     "st.global.u32 [%rd1], 1;\n")
                  .writes_anything);
}

TEST(Effects, VariablesAreTouchedByReadsAndWritesOfAnySpaceButTheKernelsOwn) {
  const std::string variables = ".global .align 4 .u32 counter;\n.const .align 4 .b8 table[64];\n";
  EXPECT_TRUE(kernel("\tatom.global.add.u32 %r1, [counter], 1;", variables).touches_variables);
  EXPECT_TRUE(kernel("\tld.const.u32 %r1, [table+4];", variables).touches_variables);
  EXPECT_TRUE(kernel("\tmov.u64 %rd4, counter;\n\tld.global.u32 %r1, [%rd4];", variables).touches_variables);
  EXPECT_FALSE(kernel("\t.shared .align 4 .b8 tile[64];\n\tld.shared.u32 %r1, [tile];", variables).touches_variables);
}

}  // namespace
}  // namespace heddle::image
