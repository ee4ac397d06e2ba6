// The mixes of workloads that a script draws, as a queue: small enough for two devices of 256 MiB.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "node.h"

namespace heddle::e2e {
namespace {

struct Mix : testing::TestWithParam<const char*> {};

TEST_P(Mix, RunsWithoutACrash) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  const std::string vecadd = workload("vecadd"), directory = vecadd.substr(0, vecadd.rfind('/'));
  const Finished drawn = Process({HEDDLE_PYTHON, "-B", HEDDLE_MIX, GetParam(), "--scale", "8192", "--work", "0.01",
                                  "--gap", "1", "--workloads", directory},
                                 {})
                             .wait();
  ASSERT_EQ(drawn.status, 0) << drawn.err;
  const std::string jobs = node.directory() + "/mix.toml";
  std::ofstream(jobs) << drawn.out;
  const Finished finished = node.heddle({"batch", jobs, "--workers", "4", "--json"}, std::chrono::seconds(240));
  EXPECT_EQ(finished.status, 0) << finished.out << finished.err;
  const Json result = Json::parse(finished.out, nullptr, false);
  ASSERT_FALSE(result.is_discarded()) << finished.out;
  for (const Json& job : result["jobs"]) {
    EXPECT_NE(std::string(job["last_line"]).find("PASS"), std::string::npos) << job;
  }
  const std::map<std::string, int> expected{{"W1", 16}, {"rain", 10}};
  const auto jobs_of_it = expected.find(GetParam());
  EXPECT_EQ(result["completed"], jobs_of_it == expected.end() ? 8 : jobs_of_it->second);
}

INSTANTIATE_TEST_SUITE_P(Mixes, Mix,
                         testing::Values("W1", "rain", "nn-predict", "nn-train", "nn-detect", "nn-generate"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace heddle::e2e
