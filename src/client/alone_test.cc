// Without a heddled: clear errors, no crash. Errors' names and texts.

#include <gtest/gtest.h>

#include <cstdlib>

#include "client/testing/cuda_api.h"

namespace heddle::client {
namespace {

TEST(Alone, EveryCallThatNeedsASessionSaysWhatToDo) {
  ::setenv("HEDDLE_SOCKET", "/nonexistent/heddle", 1);
  ::testing::internal::CaptureStderr();
  void* memory = nullptr;
  int count = -1;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorInitializationError);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInitializationError);
  EXPECT_EQ(count, 0);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("heddle run"), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "one line: " << said;
  EXPECT_EQ(cudaGetLastError(), cudaErrorInitializationError);
}

TEST(Alone, ErrorsHaveCudasNamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

}  // namespace
}  // namespace heddle::client
