// alloca, stacksave and stackrestore.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/software/simt/control.h"
#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";
constexpr const char* kBegin =
    ".entry k(.param .u64 out) {\n"
    ".reg .b64 %rd<10>, %out, %mine; .reg .b32 %r<10>, %t; .reg .pred %p<5>;\n"
    "ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %mine, %t, 4; add.u64 %mine, %mine, %out;\n";

class Stack : public ::testing::Test {
 protected:
  void load(const std::string& body, const std::string& functions = "") {
    machine_.load(kHeader + functions + kBegin + body + "\nret; }\n");
  }
  Machine::Outcome outcome(uint32_t stack_bytes = 1024) {
    out_ = machine_.allocate(4 * kLanes);
    return machine_.run("k", {.stack_bytes = stack_bytes}, out_);
  }
  std::vector<uint32_t> run() {
    auto ended = outcome();
    EXPECT_EQ(ended.progress, Block::Progress::kFinished) << ended.refusal << ended.fault.text;
    return machine_.get<uint32_t>(out_, kLanes);
  }
  Machine machine_;
  uint64_t out_ = 0;
};

TEST_F(Stack, EveryThreadGetsAsMuchAsItAsksFor) {
  load(
      "shl.b32 %r1, %t, 2; add.u32 %r1, %r1, 4; alloca.u32 %r2, %r1; alloca.u32 %r3, 8, 16;\n"
      "st.local.u32 [%r2], %t; add.u32 %r4, %r2, %r1; st.local.u32 [%r4+-4], %t; st.local.v2.u32 [%r3], {7, 7};\n"
      "ld.local.u32 %r5, [%r2]; and.b32 %r6, %r3, 15; mad.lo.u32 %r5, %r6, 1000, %r5; st.global.u32 [%mine], %r5;");
  const auto result = run();
  for (uint32_t t = 0; t < kLanes; ++t) EXPECT_EQ(result[t], t);
}

TEST_F(Stack, AFunctionGivesBackWhatItAllocated) {
  load(
      "mov.u32 %r1, 0; LOOP: call f, (); add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra LOOP;\n"
      "alloca.u64 %rd1, 8; cvta.local.u64 %rd2, %rd1; st.u32 [%rd2], %t; ld.local.u32 %r2, [%rd1];\n"
      "st.global.u32 [%mine], %r2;",
      ".func f() { .reg .b64 %rd<3>; .reg .pred %p<2>; .reg .b32 %t; mov.u32 %t, %tid.x; setp.lt.u32 %p1, %t, 5;\n"
      "alloca.u64 %rd1, 100; st.local.u32 [%rd1+96], 1; @%p1 ret; alloca.u64 %rd2, 200; st.local.u32 [%rd2], 2; }\n");
  const auto result = run();
  for (uint32_t t = 0; t < kLanes; ++t) EXPECT_EQ(result[t], t);
}

TEST_F(Stack, WhatTheCallerHasSurvivesTheCall) {
  load(
      "alloca.u64 %rd1, 64; st.local.u32 [%rd1], %t; call f, (); ld.local.u32 %r1, [%rd1]; st.global.u32 [%mine], %r1;",
      ".func f() { .local .align 4 .b8 room[200]; .reg .b64 %rd<3>; alloca.u64 %rd1, 64;\n"
      "st.local.u32 [%rd1], 99; st.local.u32 [room+196], 99; ret; }\n");
  EXPECT_EQ(run()[17], 17u);
}

TEST_F(Stack, IsWhereItWasAfterARestore) {
  load(
      "mov.u32 %r9, 0; LOOP: stacksave.u32 %r1; alloca.u32 %r2, 512; stackrestore.u32 %r1;\n"
      "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 10; @%p1 bra LOOP;\n"
      "stacksave.u32 %r3; sub.u32 %r4, %r1, %r3; st.global.u32 [%mine], %r4;");
  EXPECT_EQ(run()[3], 0u);
}

TEST_F(Stack, TheLimitDecidesHowMuchThereIs) {
  load("alloca.u32 %r1, 3000; st.local.u32 [%r1], %t; st.global.u32 [%mine], %t;");
  auto ended = outcome();
  EXPECT_EQ(ended.fault.cuda_error, kCudaHardwareStackError);
  EXPECT_THAT(ended.fault.text, HasSubstr("stack overflow"));
  EXPECT_THAT(ended.fault.text, HasSubstr("cudaLimitStackSize"));
  EXPECT_EQ(outcome(4096).fault.cuda_error, 0u);
}

TEST_F(Stack, SizesOutOfThinAirAreFaults) {
  for (const char* body : {"alloca.u64 %rd1, 0xFFFFFFFFFFFFFFF0;", "alloca.u32 %r1, 0xFFFFFFFF;"}) {
    load(body);
    EXPECT_EQ(outcome().fault.cuda_error, kCudaHardwareStackError) << body;
  }
  for (const char* body : {"mov.u32 %r1, 0xFFFFFF0; stackrestore.u32 %r1;", "mov.u32 %r1, 0; stackrestore.u32 %r1;"}) {
    load(std::string(body) + "stacksave.u32 %r2;");
    EXPECT_EQ(outcome().fault.cuda_error, kCudaLaunchFailure) << body;
  }
}

TEST_F(Stack, FormsThatDoNotExistAreRefused) {
  for (const char* body : {"alloca.u16 %r1, 4;", "alloca.u32 %r1, 4, 3;", "alloca.u32 _, 4;", "stacksave.u32 %rd1;"}) {
    load(body);
    EXPECT_THAT(outcome().refusal, HasSubstr("is not supported")) << body;
  }
}

}  // namespace
}  // namespace heddle::software
