// mma and ldmatrix, whose layouts PTX describes. wmma is tested with what nvcc makes of it.

#include "device/software/simt/matrix.h"

#include <gtest/gtest.h>

#include "device/software/simt/testing/machine.h"

namespace heddle::software {
namespace {

class Matrix : public ::testing::TestWithParam<const InstructionSet*> {
 protected:
  // A kernel with %l the lane, %g the lane's group of four, %m its place there, 1 KiB of shared memory `tile` that
  // holds what `in` points to.
  Machine::Outcome run(const std::string& body, uint64_t out, uint64_t in) {
    machine_.load(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 16 .b8 tile[1024];\n"
        ".entry k(.param .u64 out, .param .u64 in) {\n"
        ".reg .b64 %rd<10>, %out, %in; .reg .b32 %a<5>, %b<5>, %c<5>, %d<5>, %r<10>, %l, %g, %m; .reg .pred %p<3>;\n"
        "ld.param.u64 %out, [out]; ld.param.u64 %in, [in]; mov.u32 %l, %laneid; shr.u32 %g, %l, 2; and.b32 %m, %l, 3;\n"
        "mov.u32 %r9, tile; mov.u32 %r1, 0;\nFILL: mad.lo.u32 %r2, %r1, 32, %l; shl.b32 %r2, %r2, 2; cvt.u64.u32 %rd1, "
        "%r2;\n"
        "add.u64 %rd1, %rd1, %in; ld.global.u32 %r3, [%rd1]; st.shared.u32 [%r2], %r3; add.u32 %r1, %r1, 1;\n"
        "setp.lt.u32 %p1, %r1, 8; @%p1 bra FILL; bar.warp.sync -1;\n" +
        body + "\nret; }\n");
    return machine_.run("k", {}, out, in);
  }
  Machine machine_{*GetParam()};
};
INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Matrix, ::testing::ValuesIn(runnable_instruction_sets()),
                         [](const auto& p) { return std::string(p.param->name()); });

// Stores %d1 to %d4 where the accumulators of an m16n8 product belong.
const char* const kStore =
    "mad.lo.u32 %r4, %g, 8, %m; add.u32 %r4, %r4, %m; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd2, %out;\n"
    "st.global.v2.b32 [%rd2], {%d1, %d2}; st.global.v2.b32 [%rd2+256], {%d3, %d4};";

TEST_P(Matrix, ProductOfHalvesLoadedByLdmatrix) {
  // In shared memory: a, 16 x 16 by rows, then b, 8 columns of 16.
  std::vector<_Float16> in(512);
  for (int i = 0; i < 512; ++i) in[i] = static_cast<_Float16>(i * 7 % 13 - 6);
  uint64_t out = machine_.allocate(512);
  auto outcome =
      run(std::string("and.b32 %r5, %l, 15; shl.b32 %r5, %r5, 5; shr.u32 %r6, %l, 4; mad.lo.u32 %r5, %r6, 16, %r5;\n"
                      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%a1, %a2, %a3, %a4}, [%r5];\n"
                      "and.b32 %r5, %l, 7; shl.b32 %r5, %r5, 5; and.b32 %r6, %l, 8; mad.lo.u32 %r5, %r6, 2, %r5;\n"
                      "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%b1, %b2}, [%r5+512];\n"
                      "mov.b32 %c1, 0f3F800000;\n"
                      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d1, %d2, %d3, %d4}, {%a1, %a2, %a3, %a4}, "
                      "{%b1, %b2}, {%c1, %c1, %c1, %c1};\n") +
              kStore,
          out, machine_.put(in));
  ASSERT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.refusal << outcome.fault.text;
  auto result = machine_.get<float>(out, 128);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float expected = 1;
      for (int k = 0; k < 16; ++k)
        expected += static_cast<float>(in[row * 16 + k]) * static_cast<float>(in[256 + column * 16 + k]);
      EXPECT_EQ(result[row * 8 + column], expected) << row << " " << column;
    }
}

TEST_P(Matrix, ProductOfBytesWithEveryRegister) {
  // a, 16 x 32 by rows, then b, 8 columns of 32: as registers of 4 bytes.
  std::vector<int8_t> in(1024);
  for (int i = 0; i < 1024; ++i) in[i] = static_cast<int8_t>(i * 29);
  uint64_t out = machine_.allocate(512);
  auto outcome =
      run(std::string("shl.b32 %r5, %g, 5; mad.lo.u32 %r5, %m, 4, %r5;\n"
                      "ld.shared.b32 %a1, [%r5]; ld.shared.b32 %a2, [%r5+256]; ld.shared.b32 %a3, [%r5+16];\n"
                      "ld.shared.b32 %a4, [%r5+272]; ld.shared.b32 %b1, [%r5+512]; ld.shared.b32 %b2, [%r5+528];\n"
                      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%d1, %d2, %d3, %d4}, {%a1, %a2, %a3, %a4}, "
                      "{%b1, %b2}, {7, 7, 7, 7};\n") +
              kStore,
          out, machine_.put(in));
  ASSERT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.refusal << outcome.fault.text;
  auto result = machine_.get<int32_t>(out, 128);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      int expected = 7;
      for (int k = 0; k < 32; ++k) expected += in[row * 32 + k] * in[512 + column * 32 + k];
      EXPECT_EQ(result[row * 8 + column], expected) << row << " " << column;
    }
}

TEST_P(Matrix, TransposedLoadsSwapRowsAndColumns) {
  std::vector<uint16_t> in(512);
  for (int i = 0; i < 512; ++i) in[i] = static_cast<uint16_t>(i);
  uint64_t out = machine_.allocate(128);
  auto outcome =
      run("shl.b32 %r5, %l, 4; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%a1}, [%r5];\n"
          "mul.wide.u32 %rd2, %l, 4; add.u64 %rd2, %rd2, %out; st.global.b32 [%rd2], %a1;",
          out, machine_.put(in));
  ASSERT_EQ(outcome.progress, Block::Progress::kFinished) << outcome.refusal << outcome.fault.text;
  auto result = machine_.get<uint16_t>(out, 64);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) EXPECT_EQ(result[row * 8 + column], in[column * 8 + row]);
}

TEST_P(Matrix, ARowThatIsNotAlignedIsAFault) {
  auto outcome = run("mul.lo.u32 %r5, %l, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%a1}, [%r5];",
                     machine_.allocate(128), machine_.allocate(1024));
  EXPECT_EQ(outcome.fault.cuda_error, kCudaMisalignedAddress) << outcome.refusal;
}

TEST_P(Matrix, UnknownShapesAreRefused) {
  auto outcome =
      run("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%d1, %d2, %d3, %d4}, {%a1, %a2, %a3, %a4}, {%b1, "
          "%b2}, {%c1, %c2, %c3, %c4};",
          0, 0);
  EXPECT_NE(outcome.refusal.find("is not supported"), std::string::npos) << outcome.refusal;
}

}  // namespace
}  // namespace heddle::software
