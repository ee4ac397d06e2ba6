// Programs of the driver API, and such as mix it with the runtime.

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "node.h"

namespace heddle::e2e {
namespace {

const std::string kPrograms = HEDDLE_E2E_PROGRAMS "/";

class DriverApi : public testing::Test {
 protected:
  void SetUp() override {
    if (::access((kPrograms + "driver_modules").c_str(), X_OK) != 0)
      GTEST_SKIP() << "no toolkit, or no stub of libcuda";
    node_ = std::make_unique<Node>();
    ASSERT_TRUE(node_->ready()) << node_->why();
  }

  Finished run(const std::string& program, Arguments arguments = {}) {
    arguments.insert(arguments.begin(), kPrograms + program);
    return node_->run(arguments);
  }
  void expect_pass(const std::string& program, const Arguments& arguments = {}) {
    const Finished finished = run(program, arguments);
    EXPECT_EQ(finished.out, "PASS\n") << finished.err << node_->log();
    EXPECT_EQ(finished.status, 0);
    EXPECT_TRUE(Node::eventually([&] { return node_->empty(); })) << node_->ask({{"command", "ps"}}).dump();
  }

  std::unique_ptr<Node> node_;
};

TEST_F(DriverApi, ModulesAreLoadedAsTextAndAsFatBinaries) {
  expect_pass("driver_modules", {"answers"});
}

TEST_F(DriverApi, ThreadsHaveStacksOfContexts) {
  expect_pass("driver_contexts", {"answers"});
}

TEST_F(DriverApi, MemoryStreamsAndGraphsAreTheRuntimes) {
  const Finished finished = run("driver_buffers", {"answers"});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err << node_->log();
  // What is not served is named, once.
  const size_t named = finished.err.find("heddle: cuIpcGetMemHandle is not supported");
  EXPECT_NE(named, std::string::npos) << finished.err;
  EXPECT_EQ(finished.err.find("cuIpcGetMemHandle", named + 40), std::string::npos) << finished.err;
}

TEST_F(DriverApi, RuntimeAndDriverShareHandles) {
  expect_pass("driver_mixed", {"answers"});
}

TEST_F(DriverApi, FaultEndsWithItsProgram) {
  const Finished finished = run("driver_fault");
  EXPECT_EQ(finished.out, "CUDA_ERROR_ILLEGAL_ADDRESS\nCUDA_ERROR_ILLEGAL_ADDRESS\n") << finished.err << node_->log();
  expect_pass("driver_contexts", {"answers"});
}

TEST_F(DriverApi, SourceIsCompiledWhileTheProgramRuns) {
  if (::access((kPrograms + "driver_nvrtc").c_str(), X_OK) != 0) GTEST_SKIP() << "the toolkit has no libnvrtc";
  expect_pass("driver_nvrtc");
}

TEST_F(DriverApi, TheToolkitsCppLibrariesCompute) {
  expect_pass("cccl");
}

#ifdef HEDDLE_TEST_DRIVER
// Everything is a GPU's but the driver, which is the tests' own (src/device/cuda/testing).
class DriverApiOnAGpu : public DriverApi {
 protected:
  void SetUp() override {
    if (::access((kPrograms + "driver_modules").c_str(), X_OK) != 0)
      GTEST_SKIP() << "no toolkit, or no stub of libcuda";
    ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
    node_ = std::make_unique<Node>(Node::gpu_config());
    ::unsetenv("HEDDLE_CUDA_LIBRARY");
    ASSERT_TRUE(node_->ready() && node_->warm()) << node_->why() << node_->log();
  }
};

TEST_F(DriverApiOnAGpu, ModulesAreLoadedAsTextAndAsFatBinaries) {
  expect_pass("driver_modules", {"answers"});
}

TEST_F(DriverApiOnAGpu, ContextsAndTheRuntimeShareTheOnlyDevice) {
  expect_pass("driver_contexts");
  expect_pass("driver_mixed");
}

TEST_F(DriverApiOnAGpu, MemoryStreamsAndGraphsAreTheRuntimes) {
  expect_pass("driver_buffers");
}
#endif

}  // namespace
}  // namespace heddle::e2e
