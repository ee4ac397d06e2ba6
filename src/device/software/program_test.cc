#include "device/software/program.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "core/occupancy.h"
#include "device/software/launch_check.h"
#include "device/software/simt/block.h"
#include "image/fatbin_builder.h"

namespace heddle::software {
namespace {

constexpr uint64_t kGranule = MemoryMap::kGranule, kWindow = 4 * kGranule;

std::string fatbin_of(const std::string& ptx) {
  return image::FatbinBuilder()
      .add(image::kFatbinPtx, 80, ".version 9.0\n.target sm_80\n.address_size 64\n" + ptx)
      .build();
}

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    void* reserved = mmap(nullptr, kWindow + kGranule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    window_ = Mapping(reserved, kWindow + kGranule);
    memory_.emplace(*DeviceMemory::create(round_up(reinterpret_cast<uintptr_t>(reserved), kGranule), kWindow));
  }
  Result<std::unique_ptr<Program>> load(const std::string& fatbins) {
    return Program::load(std::as_bytes(std::span(fatbins)), 90, *memory_);
  }
  Mapping window_;
  std::optional<DeviceMemory> memory_;
};

const std::string kCaller =
    ".extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .u32 answer;\n"
    ".global .u64 where = answer;\n"
    ".visible .entry k(.param .u64 out) { .reg .b32 %r<3>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [out];\n"
    "ld.global.u32 %r1, [answer]; { .param .b32 x; .param .b32 r; st.param.b32 [x], %r1; call (r), twice, (x);\n"
    "ld.param.b32 %r2, [r]; } st.global.u32 [%rd1], %r2; ret; }\n";
const std::string kCallee =
    ".visible .global .u32 answer = 21;\n"
    ".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r1, [x];\n"
    "add.u32 %r1, %r1, %r1; st.param.b32 [r], %r1; ret; }\n";

TEST_F(ProgramTest, SeparatelyCompiledUnitsFindEachOther) {
  auto program = load(fatbin_of(kCaller) + fatbin_of(kCallee));
  ASSERT_TRUE(program) << program.error().text;
  auto kernel = (*program)->kernel("k");
  ASSERT_TRUE(kernel) << kernel.error().text;
  auto answer = (*program)->variable("answer"), where = (*program)->variable("where");
  ASSERT_TRUE(answer && where);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(where->address), answer->address);

  auto out = memory_->add_variables(4);
  ASSERT_TRUE(out);
  LaunchShape shape;
  shape.parameters = std::as_bytes(std::span(&*out, 1));
  auto block = Block::create(*(*kernel)->code, shape, memory_->map(), nullptr);
  ASSERT_TRUE(block) << block.error().text;
  (*block)->start({}, 0);
  ASSERT_EQ((*block)->run(1000), Block::Progress::kFinished) << (*block)->fault().text;
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(*out), 42u);
}

// A block that waits for another one leaves its thread to it long before its turn is over.
TEST_F(ProgramTest, ABlockThatOnlyPollsEndsItsTurn) {
  auto program =
      load(fatbin_of(".visible .global .u32 flag = 0;\n"
                     ".entry k() { .reg .b32 %r<2>; .reg .pred %p<2>;\n"
                     "SPIN: ld.acquire.gpu.global.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0;\n"
                     "@%p1 bra SPIN; ret; }\n"));
  ASSERT_TRUE(program) << program.error().text;
  auto kernel = (*program)->kernel("k");
  ASSERT_TRUE(kernel) << kernel.error().text;
  auto block = Block::create(*(*kernel)->code, LaunchShape{}, memory_->map(), nullptr);
  ASSERT_TRUE(block) << block.error().text;
  (*block)->start({}, 0);
  EXPECT_EQ((*block)->run(50'000), Block::Progress::kRunning);
  EXPECT_TRUE((*block)->is_waiting());
  EXPECT_LT((*block)->counters().warp_instructions, 10'000u);
  *reinterpret_cast<uint32_t*>((*program)->variable("flag")->address) = 1;
  EXPECT_EQ((*block)->run(50'000), Block::Progress::kFinished) << (*block)->fault().text;
  EXPECT_FALSE((*block)->is_waiting());
}

TEST_F(ProgramTest, AFunctionThatNoUnitDefinesIsNamedWhenItsKernelIsAskedFor) {
  auto program = load(fatbin_of(kCaller) + fatbin_of(".visible .global .u32 answer = 21;\n"));
  ASSERT_TRUE(program) << program.error().text;
  auto kernel = (*program)->kernel("k");
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.error().text.find("twice"), std::string::npos) << kernel.error().text;
}

TEST_F(ProgramTest, KernelsKnowWhetherTheirModuleAllocates) {
  const char* kernel = ".entry k() { ret; }\n";
  auto plain = load(fatbin_of(kernel));
  ASSERT_TRUE(plain);
  EXPECT_FALSE((*(*plain)->kernel("k"))->allocates);
  auto allocating = load(fatbin_of(std::string(".extern .func (.param .b64 r) malloc(.param .b64 bytes);\n") + kernel));
  ASSERT_TRUE(allocating);
  EXPECT_TRUE((*(*allocating)->kernel("k"))->allocates);
}

TEST_F(ProgramTest, EstimatedRegistersKeepNoBlockOfACooperativeLaunchOut) {
  auto program = load(fatbin_of(".entry k() { ret; }\n"));
  ASSERT_TRUE(program);
  auto kernel = (*program)->kernel("k");
  ASSERT_TRUE(kernel);
  const DeviceModel model = *device_preset("P100");
  device::LaunchConfig config{.block = {1024, 1, 1}};
  (*kernel)->registers = 64;  // one block an SM
  EXPECT_EQ(fitting(sm_of(model).whole, *check_launch(**kernel, config, model)), 1u);
  config.cooperative = true;
  EXPECT_EQ(fitting(sm_of(model).whole, *check_launch(**kernel, config, model)), 2u);
  (*kernel)->registers_estimated = false;
  EXPECT_EQ(fitting(sm_of(model).whole, *check_launch(**kernel, config, model)), 1u);
}

TEST_F(ProgramTest, EstimatedRegistersKeepNoBlockOut) {
  auto program = load(fatbin_of(".entry k() { ret; }\n"));
  ASSERT_TRUE(program);
  auto kernel = (*program)->kernel("k");
  ASSERT_TRUE(kernel);
  const DeviceModel model = *device_preset("P100");
  device::LaunchConfig config{.block = {1000, 1, 1}};
  (*kernel)->registers = 112;
  const auto share = check_launch(**kernel, config, model);
  ASSERT_TRUE(share) << share.error().text;
  EXPECT_EQ(share->registers, 65536u);
  config.block = {128, 1, 1};
  EXPECT_EQ(check_launch(**kernel, config, model)->registers, 4u * 65536 / 16) << "16 such warps an SM, not 18";
  (*kernel)->registers_estimated = false;
  config.block = {1000, 1, 1};
  EXPECT_FALSE(check_launch(**kernel, config, model)) << "machine code says so";
}

TEST_F(ProgramTest, TheHeapHasTheSizeThatWasSetBeforeItWasMade) {
  EXPECT_EQ(memory_->heap(), nullptr);
  ASSERT_TRUE(memory_->set_heap_bytes(kMiB));
  ASSERT_TRUE(memory_->make_heap());
  uint64_t piece = memory_->heap()->allocate(kMiB);
  EXPECT_TRUE(memory_->map().contains(piece, kMiB));
  EXPECT_EQ(memory_->heap()->allocate(16), 0u);
  EXPECT_FALSE(memory_->set_heap_bytes(2 * kMiB));
  EXPECT_TRUE(memory_->set_heap_bytes(kMiB));
}

}  // namespace
}  // namespace heddle::software
