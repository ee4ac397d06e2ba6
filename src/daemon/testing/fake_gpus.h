#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace heddle::daemon::testing {

// One GPU, of the memory of a small software device.
inline constexpr const char* kSmallGpu = R"(
[[gpu]]
mps = "off"
memory = "64M"
context_memory = "0"
variables_stay = true
)";

// The driver for tests in NVIDIA's place, for a household that starts while this lives: files beside it say what
// machine it plays.
class FakeGpus {
 public:
  FakeGpus() {
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    driver_ = directory_ + "/libcuda-test.so";
    std::filesystem::create_symlink(HEDDLE_TEST_DRIVER, driver_);
    ::setenv("HEDDLE_CUDA_LIBRARY", driver_.c_str(), 1);
  }
  ~FakeGpus() {
    ::unsetenv("HEDDLE_CUDA_LIBRARY");
    std::filesystem::remove_all(directory_);
  }
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;

  // How many GPUs there are, and "apart" where they do not reach each other's memory. One, if nothing is said.
  void machine(const std::string& gpus) const { std::ofstream(driver_ + ".gpus") << gpus; }
  // Each process has modules' variables elsewhere.
  void move_variables() const { std::ofstream(driver_ + ".moves") << 1; }
  // A file that says how many bytes of its memory can be made in one piece; without it, all.
  std::string room() const { return driver_ + ".room"; }
  // The same of this machine's memory that GPUs reach.
  std::string host_room() const { return driver_ + ".host_room"; }

 private:
  std::string directory_ = ::testing::TempDir() + "/heddle-driver-XXXXXX", driver_;
};

}  // namespace heddle::daemon::testing
