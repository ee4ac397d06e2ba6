// Each policy by itself, driven through a placement state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/placement_state.h"
#include "policy/test_pool.h"

namespace heddle::policy {
namespace {

using testing::HasSubstr;

// A placement state where every task is a session and a job of its own.
class OneTaskEach {
 public:
  OneTaskEach(const char* policy, std::vector<DeviceSpec> devices) : state_(policy_named(policy), std::move(devices)) {}

  // The device where the task was begun; nothing where it must wait.
  std::optional<DeviceId> run(uint64_t id, Bytes memory, ComputeNeed compute = grid(56)) {
    const auto model = state_.pool().find_model("p100");
    state_.open_session({id}, {id});
    const Request request{{id}, {id}, {id}, 0, *model, memory, compute, {}, {}};
    Answer answer = state_.placement().place(request, state_.pool());
    if (const auto* later = std::get_if<NotNow>(&answer)) {
      reason = later->reason;
      state_.close_session({id});
      return {};
    }
    const Placed& placed = std::get<Placed>(answer);
    reason = placed.reason;
    state_.begin(request, placed.device);
    return placed.device;
  }
  void end(uint64_t id) { state_.close_session({id}); }
  PlacementState& state() { return state_; }

  std::string reason;

 private:
  PlacementState state_;
};

constexpr std::optional<DeviceId> on(uint64_t device) {
  return DeviceId{device};
}

TEST(Sa, FirstFreeDeviceForOneJobEach) {
  OneTaskEach pool("sa", p100s(2));
  EXPECT_EQ(pool.run(1, gib(1)), on(0));
  EXPECT_EQ(pool.run(2, gib(1)), on(1));
  EXPECT_EQ(pool.run(3, gib(1)), std::nullopt);
  EXPECT_THAT(pool.reason, HasSubstr("each of the 2 devices belongs to a job"));
  pool.end(1);
  EXPECT_EQ(pool.run(4, gib(1)), on(0));
}

TEST(Cg, GoesRoundUpToTheRatio) {
  OneTaskEach pool("cg:2", p100s(2));
  EXPECT_EQ(pool.run(1, gib(1)), on(0));
  EXPECT_EQ(pool.run(2, gib(1)), on(1));
  EXPECT_EQ(pool.run(3, gib(1)), on(0));
  pool.end(1);
  EXPECT_EQ(pool.run(4, gib(1)), on(1));
  EXPECT_EQ(pool.run(5, gib(1)), on(0));
  EXPECT_EQ(pool.run(6, gib(1)), std::nullopt);
  EXPECT_THAT(pool.reason, HasSubstr("all 2 places"));
}

TEST(Cg, LooksAtNoMemory) {
  const PlacementState state(policy_named("cg:2"), p100s(1, gib(1)));
  const Request request{{1}, {1}, {1}, 0, 0, gib(100), grid(1), {}, {}};
  EXPECT_TRUE(std::holds_alternative<Placed>(state.placement().place(request, state.pool())));
}

TEST(Cg, RoundOfEachModelIsItsOwn) {
  auto devices = p100s(3);
  devices[1].model = "other";
  PlacementState state(policy_named("cg:2"), devices);
  const auto assign = [&](uint64_t job, size_t model) {
    const Request request{{job}, {job}, {job}, 0, model, {}, {}, {}, {}};
    state.open_session({job}, {job});
    const Answer answer = state.placement().place(request, state.pool());
    state.assign(request, std::get<Placed>(answer).device);
    return std::get<Placed>(answer).device;
  };
  EXPECT_EQ(assign(1, 0), DeviceId{0});
  EXPECT_EQ(assign(2, 1), DeviceId{1});
  EXPECT_EQ(assign(3, 0), DeviceId{2});
  EXPECT_EQ(assign(4, 0), DeviceId{0});
}

TEST(SchedGpu, MemoryOfTheFirstDeviceDecides) {
  OneTaskEach pool("schedgpu", p100s(2));
  EXPECT_EQ(pool.run(1, gib(10), grid(1'000'000)), on(0));
  EXPECT_EQ(pool.run(2, gib(6), grid(1'000'000)), on(0));
  EXPECT_EQ(pool.run(3, gib(1)), std::nullopt);
  EXPECT_THAT(pool.reason, HasSubstr("needs 1 GiB; most is free on device 0: 0 B of 16 GiB"));
}

TEST(MgbWarps, FewestWarpsAmongThoseThatFit) {
  OneTaskEach pool("mgb-warps", p100s(3));
  EXPECT_EQ(pool.run(1, gib(2), grid(112)), on(0));
  EXPECT_EQ(pool.run(2, gib(2), grid(56)), on(1));
  EXPECT_EQ(pool.run(3, gib(15), grid(1)), on(2));
  EXPECT_EQ(pool.run(4, gib(2), grid(1)), on(1));  // device 2 has fewer warps, but not the memory
  EXPECT_EQ(pool.reason, "fits on 0 (14 GiB free), 1 (14 GiB free); fewest warps in use on 1 (448 of 3584)");
}

TEST(MgbWarps, TiesGoToTheLowerId) {
  OneTaskEach pool("mgb-warps", p100s(2));
  EXPECT_EQ(pool.run(1, gib(1), grid(10)), on(0));
  EXPECT_EQ(pool.run(2, gib(1), grid(10)), on(1));
  EXPECT_EQ(pool.run(3, gib(1), grid(10)), on(0));
}

TEST(MgbWarps, ComputeIsSoft) {
  OneTaskEach pool("mgb-warps", p100s(1));
  EXPECT_EQ(pool.run(1, gib(1), grid(1'000'000)), on(0));
  EXPECT_EQ(pool.run(2, gib(1), grid(1'000'000)), on(0));
  EXPECT_EQ(pool.state().pool().load({0}).warps, 2u * 3584);
}

TEST(MgbSm, ComputeIsHard) {
  OneTaskEach pool("mgb-sm", p100s(2));
  EXPECT_EQ(pool.run(1, gib(1), grid(300)), on(0));  // 448 blocks of eight warps fill a device
  EXPECT_EQ(pool.run(2, gib(1), grid(148)), on(0));
  EXPECT_EQ(pool.run(3, gib(1), grid(1)), on(1));
  EXPECT_EQ(pool.run(4, gib(1), grid(448)), std::nullopt);
  EXPECT_THAT(pool.reason, HasSubstr("none has room on its SMs for 448 blocks of 8 warps"));
  pool.end(1);
  EXPECT_EQ(pool.run(5, gib(1), grid(300)), on(0));
}

TEST(MgbSm, MemoryIsHardToo) {
  OneTaskEach pool("mgb-sm", p100s(1));
  EXPECT_EQ(pool.run(1, gib(10), grid(1)), on(0));
  EXPECT_EQ(pool.run(2, gib(10), grid(1)), std::nullopt);
}

TEST(MgbSm, GridLargerThanTheDeviceRunsOnAnIdleOne) {
  OneTaskEach pool("mgb-sm", p100s(1));
  EXPECT_EQ(pool.run(1, gib(1), grid(1'000'000)), on(0));
  EXPECT_EQ(pool.run(2, gib(1), grid(1)), std::nullopt);
}

TEST(MgbSm, GrowthWhileRunningTakesWhatThereIs) {
  OneTaskEach pool("mgb-sm", p100s(1));
  pool.run(1, gib(1), grid(400));
  pool.run(2, gib(1), grid(40));
  pool.state().set_compute({2}, {2}, grid(400));
  EXPECT_EQ(pool.run(3, gib(1), grid(1)), std::nullopt);
  pool.end(2);
  EXPECT_EQ(pool.run(4, gib(1), grid(48)), on(0));
}

class EveryPolicy : public testing::TestWithParam<const char*> {};

TEST_P(EveryPolicy, StaysWithinTheModel) {
  auto devices = p100s(3);
  devices[0].model = "v100";
  OneTaskEach pool(GetParam(), devices);
  EXPECT_EQ(pool.run(1, gib(1)), on(1));
}

TEST_P(EveryPolicy, AvoidsTheReservedDevice) {
  const PlacementState state(policy_named(GetParam()), p100s(1));
  const Request request{{1}, {1}, {1}, 0, 0, gib(1), grid(1), {}, DeviceId{0}};
  EXPECT_TRUE(std::holds_alternative<NotNow>(state.placement().place(request, state.pool())));
}

INSTANTIATE_TEST_SUITE_P(Placement, EveryPolicy,
                         testing::Values("sa", "cg:2", "schedgpu", "mgb-sm", "mgb-warps", "grr", "gmin", "gwtmin",
                                         "rtf", "guf", "guf:cpu"));

}  // namespace
}  // namespace heddle::policy
