// A worker shows what is done before it commits it: memory that is freed and space in the ring can be used again all
// the same.

#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using testing::launch_add;

const auto* const environment = ::testing::AddGlobalTestEnvironment(
    new testing::Environment({.devices = 1, .budget = 2 * kMiB, .shows_ahead = true}));

// The budget is one segment, which both share.
TEST(ShownAhead, WhatWasFreedIsHadAgain) {
  void *stays = nullptr, *comes = nullptr;
  ASSERT_EQ(cudaMalloc(&stays, 900 * kKiB), cudaSuccess);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(cudaMalloc(&comes, 900 * kKiB), cudaSuccess) << "round " << i;
    ASSERT_EQ(launch_add(comes, 1, stays), cudaSuccess);
    ASSERT_EQ(cudaFree(comes), cudaSuccess);
  }
  EXPECT_EQ(cudaFree(stays), cudaSuccess);
}

// More than the ring has space for records, and its bulk area for payloads.
TEST(ShownAhead, SpaceInTheRingIsHadAgain) {
  void* buffer = nullptr;
  ASSERT_EQ(cudaMalloc(&buffer, 900 * kKiB), cudaSuccess);
  std::vector<char> host(512 * kKiB);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(launch_add(buffer, 1, buffer), cudaSuccess);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(cudaMemcpy(buffer, host.data(), host.size(), cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
}

}  // namespace
}  // namespace heddle::client
