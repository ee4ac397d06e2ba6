// Managed memory that lives on the device while kernels run, and memory that stays on the host: programs see the same.

#include <gtest/gtest.h>

#include "node.h"

namespace heddle::e2e {
namespace {

std::string one_that_keeps(const std::string& managed) {
  return "[daemon]\nwarm_workers = 1\nmanaged_memory = \"" + managed +
         "\"\n[[device]]\npreset = 'P100'\ncount = 1\nmemory = '256M'\nslowdown = 0\ncopy_slowdown = 0\n";
}

struct Managed : testing::TestWithParam<const char*> {};

TEST_P(Managed, IsWhatTheHostAndTheDeviceWroteLast) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node(one_that_keeps(GetParam()));
  ASSERT_TRUE(node.ready()) << node.why();
  const Finished finished = node.run({HEDDLE_E2E_PROGRAMS "/managed", kManagedLeftOut});
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  const std::string concurrent =
      std::string("concurrentManagedAccess ") + (GetParam() == std::string("device") ? "0" : "1");
  EXPECT_NE(finished.out.find(concurrent), std::string::npos) << finished.out;
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}
INSTANTIATE_TEST_SUITE_P(Places, Managed, testing::Values("device", "host"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace heddle::e2e
