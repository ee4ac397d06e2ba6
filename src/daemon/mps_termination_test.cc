// Workers under MPS that heddled terminates because a request needs their device. The GPU is the driver's for tests,
// its MPS a control program and a server that the tests bring, workers are fakes.

#include "daemon/testing/fake_gpus.h"
#include "daemon/testing/fake_mps.h"
#include "daemon/testing/termination_fixture.h"

namespace heddle::daemon::testing {
namespace {

// MPS takes the worker off its GPU, which fails what that computes (810).
class TerminationUnderMpsTest : FakeGpus, FakeMps, public TerminationTest {
 protected:
  TerminationUnderMpsTest() : TerminationTest("[[gpu]]\nmps = \"on\"\nmemory = \"64M\"\ncontext_memory = \"0\"\n") {}
};

TEST_F(TerminationUnderMpsTest, WhatMpsDoesToTheWorkerIsNobodysFault) {
  const pid_t servers = worker_of(*server_);
  compute(*batch_, kRepeatableLong);
  for (uint64_t round = 1; round <= 3; ++round) ASSERT_NO_FATAL_FAILURE(terminate(round)) << round;
  EXPECT_EQ(worker_of(*server_), servers);
  EXPECT_EQ(job_of(*batch_)["revocations"]["terminated"], 3);
  expect_batch_ends_well();
}

}  // namespace
}  // namespace heddle::daemon::testing
