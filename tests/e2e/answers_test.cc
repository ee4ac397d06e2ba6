// What programs are answered, and what they print, on software devices and on the driver for tests.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "node.h"

namespace heddle::e2e {
namespace {

enum class On { kSoftware, kTestDriver };

class Answers : public testing::TestWithParam<On> {
 protected:
  void SetUp() override {
    HEDDLE_NEEDS_WORKLOADS();
    if (GetParam() == On::kTestDriver) {
#ifdef HEDDLE_TEST_DRIVER
      ::setenv("HEDDLE_CUDA_LIBRARY", HEDDLE_TEST_DRIVER, 1);
      ::setenv("LD_LIBRARY_PATH", HEDDLE_TEST_LIBRARIES, 1);
#endif
      node_ = std::make_unique<Node>(Node::gpu_config());
    } else {
      node_ = std::make_unique<Node>();
    }
    ASSERT_TRUE(node_->ready()) << node_->why();
    EXPECT_TRUE(node_->warm()) << node_->log();
  }
  void TearDown() override {
    node_.reset();
    ::unsetenv("HEDDLE_CUDA_LIBRARY");
    ::unsetenv("LD_LIBRARY_PATH");
  }

  Finished run(const std::string& program, Arguments arguments = {}) {
    arguments.insert(arguments.begin(), std::string(HEDDLE_E2E_PROGRAMS "/") + program);
    return node_->run(arguments);
  }
  void expect_pass(const std::string& program, const Arguments& arguments = {}) {
    const Finished finished = run(program, arguments);
    EXPECT_EQ(finished.out, "PASS\n") << finished.err << node_->log();
    EXPECT_EQ(finished.status, 0);
  }

  std::unique_ptr<Node> node_;
};

TEST_P(Answers, WhoWaitsForAGraphWaitsForItsHostWork) {
  expect_pass("graph_waits");
}

TEST_P(Answers, AFailedAssertionIsReadByTheProgramAndNotInTheLog) {
  const Finished finished = run("device_assert");
  EXPECT_EQ(finished.out, "cudaErrorAssert\n") << finished.err << node_->log();
  EXPECT_NE(finished.err.find("Assertion `zero < 0` failed"), std::string::npos) << finished.err;
  if (GetParam() == On::kTestDriver) {
    EXPECT_EQ(node_->log().find("zero < 0"), std::string::npos) << node_->log();
  }
}

TEST_P(Answers, GeneratorsOfTheHostHaveTheDevicesNumbers) {
  if (::access(HEDDLE_E2E_PROGRAMS "/random_hosts", X_OK) != 0) GTEST_SKIP() << "the toolkit has no cuRAND to link";
  expect_pass("random_hosts");
}

TEST_P(Answers, FourierTransformsAreWhatTheirDefinitionSays) {
  if (::access(HEDDLE_E2E_PROGRAMS "/fourier", X_OK) != 0) GTEST_SKIP() << "the toolkit has no cuFFT to link";
  const Finished finished = run("fourier");
  EXPECT_EQ(finished.status, 0) << finished.err << node_->log();
  EXPECT_TRUE(finished.out.ends_with("PASS\n")) << finished.out << finished.err;
  const Finished bad = run("fourier", {"bad"});
  EXPECT_EQ(bad.out.find("bad address: cudaError"), 0u) << bad.out << bad.err;
  EXPECT_EQ(bad.out.find("cudaSuccess"), std::string::npos) << bad.out;
}

// PTX alone, of several units.
TEST_P(Answers, SeparatelyCompiledDeviceCodeIsLinkedWhereItIsLoaded) {
  const Finished finished = run("separable");
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node_->log();
  EXPECT_EQ(finished.out, "PASS\n");
}

#ifdef HEDDLE_TOOLKIT_DRIVER
TEST_P(Answers, DriverThatIsOnlyLookedForCostsNothing) {
  expect_pass("driver_api");
  const Finished probed = run("driver_api", {"probe"});
  EXPECT_EQ(probed.out, "PASS\n") << probed.err;
  EXPECT_EQ(probed.err, "");
}

TEST_P(Answers, DriverThatIsOpenedByItsPlaceIsHeddles) {
  const Finished finished = run("driver_api", {"place", HEDDLE_TOOLKIT_DRIVER});
  EXPECT_EQ(finished.out, "PASS\n") << finished.err;
}
#endif

std::vector<On> devices() {
#ifdef HEDDLE_TEST_DRIVER
  return {On::kSoftware, On::kTestDriver};
#else
  return {On::kSoftware};
#endif
}
INSTANTIATE_TEST_SUITE_P(Devices, Answers, testing::ValuesIn(devices()), [](const auto& instance) {
  return std::string(instance.param == On::kSoftware ? "Software" : "TestDriver");
});

}  // namespace
}  // namespace heddle::e2e
