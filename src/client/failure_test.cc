// What becomes of the session when things go wrong. In this order, since the session is one: heddled restarts, then the
// device fails for good.

#include <sys/wait.h>
#include <unistd.h>

#include "client/testing/session_test.h"

namespace heddle::client {
namespace {

using testing::launch_add;
using testing::the_heddled;

const auto* const environment = ::testing::AddGlobalTestEnvironment(new testing::Environment({}));

TEST(Failure, RestartWhileATaskWaitsThenForkThenDeviceFault) {
  // heddled goes away while the task is announced but not granted: its successor hears everything again.
  the_heddled->hold();
  void* memory;
  ASSERT_EQ(cudaMalloc(&memory, 2 * kMiB), cudaSuccess);
  ASSERT_EQ(launch_add(nullptr, 0, nullptr), cudaSuccess) << "launches do not wait for a device";
  EXPECT_EQ(cudaStreamQuery(nullptr), cudaErrorNotReady);
  while (the_heddled->count("begin 1 blocks 1") < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  the_heddled->restart();
  std::thread later([] {
    while (the_heddled->count("begin 1 blocks 1") < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    the_heddled->go();
  });
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  later.join();
  EXPECT_EQ(the_heddled->count("module 1"), 2u);
  EXPECT_EQ(the_heddled->count("segment 1 2097152"), 2u);
  EXPECT_EQ(the_heddled->count("begin 1 blocks 1"), 2u);

  // A child that was forked has no session; it says so, and its parent's goes on.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(cudaFree(nullptr) == cudaErrorInitializationError ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);

  // A fault is sticky, and shows at whatever comes next.
  the_heddled->fault_next(cudaErrorIllegalAddress, "illegal read at 0x10 (kernel add, line 3)");
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(launch_add(nullptr, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(launch_add(nullptr, 0, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "heddle: illegal read at 0x10 (kernel add, line 3)\n") << "once";
}

}  // namespace
}  // namespace heddle::client
