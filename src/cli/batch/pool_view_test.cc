#include "cli/batch/pool_view.h"

#include <gtest/gtest.h>

namespace heddle::cli {
namespace {

Json pool_device(const char* dispatch, const char* sharing, uint64_t tasks, uint64_t warps, uint64_t busy_ns) {
  return {{"dispatch", dispatch}, {"sharing", sharing}, {"tasks", tasks},
          {"warps", warps},       {"max_warps", 3'584}, {"usage", {{"busy_ns", busy_ns}}}};
}

Json session_with(uint64_t job, std::initializer_list<const char*> states) {
  Json tasks = Json::array();
  for (const char* state : states) tasks.push_back({{"state", state}});
  return {{"session", 100 + job}, {"job", job}, {"tasks", tasks}};
}

TEST(PoolView, AddsDevicesAndCountsTheBatchsJobs) {
  const Json devices{{"devices", Json::array({pool_device("open", "concurrent", 3, 1'000, 500),
                                              pool_device("open", "concurrent", 1, 2'000, 70)})}};
  // Job 1 waits for a device, 2 for more memory with one of its tasks, 3 runs, 4 has none yet, 9 is somebody else's.
  const Json ps{
      {"sessions", Json::array({session_with(1, {"waiting"}), session_with(2, {"running", "waiting for memory"}),
                                session_with(3, {"starting"}), session_with(4, {}), session_with(9, {"waiting"})})}};
  const PoolView view = pool_view(devices, ps, {{1}, {2}, {3}, {4}, {5}});
  EXPECT_EQ(view.use.devices, 2u);
  EXPECT_EQ(view.use.tasks, 4u);
  EXPECT_EQ(view.use.warps, 3'000u);
  EXPECT_EQ(view.use.max_warps, 7'168u);
  EXPECT_EQ(view.use.busy_ns, 570);
  EXPECT_EQ(view.use.waiting, 2u);
  EXPECT_EQ(view.use.sharing, policy::DeviceSharing::kConcurrent);
  EXPECT_EQ(view.with_task, (std::set<JobId>{{1}, {2}, {3}}));
}

TEST(PoolView, DevicesThatServeNobodyAreNone) {
  Json broken = pool_device("fs", "concurrent", 3, 1'000, 500), works = pool_device("open", "concurrent", 1, 2'000, 70);
  broken["state"] = "faulted: its MPS is being started anew";
  works["state"] = "ok";
  const policy::PoolUse use = pool_view({{"devices", Json::array({broken, works})}}, Json::object(), {}).use;
  EXPECT_EQ(use.devices, 1u);
  EXPECT_EQ(use.tasks, 1u);
  EXPECT_EQ(use.warps, 2'000u);
  EXPECT_EQ(use.max_warps, 3'584u);
  EXPECT_EQ(use.busy_ns, 70);
  EXPECT_EQ(use.sharing, policy::DeviceSharing::kConcurrent);
}

TEST(PoolView, KnowsHowDevicesAreShared) {
  const auto seen = [](const char* dispatch, const char* sharing) {
    const Json devices{{"devices", Json::array({pool_device(dispatch, sharing, 0, 0, 0)})}};
    return pool_view(devices, Json::object(), {}).use.sharing;
  };
  EXPECT_EQ(seen("open", "time-sliced"), policy::DeviceSharing::kTimeSliced);
  EXPECT_EQ(seen("fs", "concurrent"), policy::DeviceSharing::kLeased);
}

}  // namespace
}  // namespace heddle::cli
