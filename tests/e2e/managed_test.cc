// Managed memory that lives on the device while kernels run, and memory that stays on the host: programs see the same.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

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

using ::testing::AllOf;
using ::testing::HasSubstr;

// The host's access waits for the kernel, and the kernel for the host.
struct ManagedAtOnce : testing::TestWithParam<const char*> {
  void SetUp() override {
    HEDDLE_NEEDS_WORKLOADS();
    ASSERT_TRUE(node.ready()) << node.why();
  }
  Arguments program() const { return {HEDDLE_E2E_PROGRAMS "/managed_concurrent", GetParam()}; }
  Arguments with_managed(const std::string& place) const {
    Arguments all{"run", "--managed", place, "--"};
    for (const std::string& each : program()) all.push_back(each);
    return all;
  }
  Node node{one_that_keeps("device")};
};

TEST_P(ManagedAtOnce, IsSaidWhereItWouldHangWithoutAWord) {
  Process hanging = node.spawn_run(program());
  ASSERT_TRUE(Node::eventually([&] { return hanging.err().find("heddle run --managed host") != std::string::npos; }))
      << hanging.out() << hanging.err();
  EXPECT_THAT(hanging.out(), HasSubstr("concurrentManagedAccess 0"));
  const std::string kernel = GetParam() == std::string("counter") ? "count_until(" : "await_flag(";
  EXPECT_THAT(hanging.err(), AllOf(HasSubstr(kernel + "unsigned int volatile*, unsigned int volatile*)"),
                                   HasSubstr("of a buffer of 8 B at 0x"), HasSubstr("has waited for 1.")));
  hanging.signal(SIGTERM);
  hanging.wait();
  EXPECT_TRUE(Node::eventually([&] { return node.empty(); }));
}

TEST_P(ManagedAtOnce, IsServedOnTheHost) {
  const Finished finished = node.heddle(with_managed("host"));
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << node.log();
  EXPECT_THAT(finished.out, HasSubstr("concurrentManagedAccess 1"));
  EXPECT_EQ(finished.err, "");
}
INSTANTIATE_TEST_SUITE_P(Ways, ManagedAtOnce, testing::Values("flag", "counter", "prefetch"),
                         [](const auto& instance) { return std::string(instance.param); });

// What the program wants goes before the configuration; and where it cannot be, that is said.
TEST(ManagedPlace, IsTheProgramsChoiceWhereItSeesOneDevice) {
  HEDDLE_NEEDS_WORKLOADS();
  const Arguments wants_device{"run", "--managed", "device", "--", HEDDLE_E2E_PROGRAMS "/managed_concurrent", "turns"};
  {
    Node one(one_that_keeps("host"));
    ASSERT_TRUE(one.ready()) << one.why();
    const Finished finished = one.heddle(wants_device);
    EXPECT_EQ(finished.status, 0) << finished.out << finished.err << one.log();
    EXPECT_THAT(finished.out, HasSubstr("concurrentManagedAccess 0"));
    EXPECT_EQ(finished.err, "");
  }
  Node two;
  ASSERT_TRUE(two.ready()) << two.why();
  const Finished finished = two.heddle(wants_device);
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err << two.log();
  EXPECT_THAT(finished.out, HasSubstr("concurrentManagedAccess 1"));
  EXPECT_THAT(finished.err, HasSubstr("--managed device) has no effect: the program sees 2 devices"));
  const Finished wrong = two.heddle({"run", "--managed", "nowhere", "--", HEDDLE_E2E_PROGRAMS "/managed"});
  EXPECT_NE(wrong.status, 0);
  EXPECT_THAT(wrong.err, HasSubstr("--managed"));
}

}  // namespace
}  // namespace heddle::e2e
