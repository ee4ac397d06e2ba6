// What heddle takes a launch to read and write, against what it does: every program of the tests runs checked, and no
// access may lie outside. A wrong declaration would make replay of revoked work restore too little.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node.h"

namespace heddle::e2e {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* name;
  std::vector<std::string> command;  // the first is a workload's name, or where it has a slash a program's path
};

// Small: a checked kernel takes many times as long.
const Case kCases[] = {
    {"backprop", {"backprop", "--inputs", "1600", "--hidden", "20"}},
    {"bfs", {"bfs", "--nodes", "1000", "--degree", "8"}},
    {"blackscholes", {"blackscholes", "--size", "1000"}},
    {"conv2d", {"conv2d", "--width", "100", "--height", "60"}},
    {"dwt2d", {"dwt2d", "--width", "100", "--height", "100"}},
    {"dwt2d_floats", {"dwt2d", "--width", "64", "--height", "100", "--wavelet", "9/7"}},
    {"dxtc", {"dxtc", "--width", "32", "--height", "29"}},
    {"eigenvalues", {"eigenvalues", "--size", "60"}},
    {"episodes", {"episodes", "--size", "5000", "--gap", "1"}},
    {"gaussian", {"gaussian", "--width", "70", "--height", "50"}},
    {"histogram", {"histogram", "--width", "100", "--height", "100"}},
    {"lavamd", {"lavamd", "--boxes", "2", "--particles", "33"}},
    {"mm2", {"mm2", "--rows", "20", "--inner", "30", "--columns", "20"}},
    {"montecarlo", {"montecarlo", "--size", "20", "--paths", "1000"}},
    {"needle", {"needle", "--length", "100"}},
    {"nested_pointers",
     {"nested_pointers", "--rows", "10", "--length", "100", "--chains", "10", "--chain-length", "12"}},
    {"nn_predict", {"nn", "--side", "8", "--channels", "4", "--layers", "1", "--classes", "5", "--batch", "2"}},
    {"nn_train",
     {"nn", "--mode", "train", "--side", "8", "--channels", "4", "--layers", "1", "--classes", "5", "--batch", "2"}},
    {"nn_detect", {"nn", "--mode", "detect", "--side", "16", "--channels", "4", "--layers", "2", "--gap", "1"}},
    {"nn_generate", {"nn", "--mode", "generate", "--hidden", "16", "--batch", "2"}},
    {"srad_v1", {"srad_v1", "--rows", "60", "--columns", "50"}},
    {"srad_v2", {"srad_v2", "--rows", "60", "--columns", "50"}},
    {"transpose", {"transpose", "--rows", "100", "--columns", "30"}},
    {"vecadd", {"vecadd", "--size", "10000"}},
    {"device_time", {"/device_time", "streams", "1000"}},
    {"fresh_memory", {"/fresh_memory"}},
    {"graph_conditions", {"/graph_conditions"}},
    {"graph_memory", {"/graph_memory"}},
    {"graph_waits", {"/graph_waits"}},
    {"graphs", {"/graphs"}},
    {"grid_sync", {"/grid_sync"}},
    {"grid_sync_ordinary", {"/grid_sync", "ordinary"}},
    {"limits", {"/limits"}},
    {"managed", {"/managed", kManagedLeftOut}},
    {"managed_loop", {"/managed_loop", "1", "1"}},
    {"many_buffers", {"/many_buffers", "60", "4"}},
    {"memory_loop", {"/memory_loop", "3", "8"}},
    {"peer_copy", {"/peer_copy"}},
    {"pools", {"/pools"}},
    {"reset", {"/reset"}},
    {"separable", {"/separable"}},
    {"textures", {"/textures"}},
};

struct DeclaredSets : testing::TestWithParam<Case> {};

TEST_P(DeclaredSets, ContainWhatKernelsAccess) {
  HEDDLE_NEEDS_WORKLOADS();
  Node node;
  ASSERT_TRUE(node.ready()) << node.why();
  Arguments command = {"run", "--check", "--"};
  command.insert(command.end(), GetParam().command.begin(), GetParam().command.end());
  std::string& program = command[3];
  program = program[0] == '/' ? HEDDLE_E2E_PROGRAMS + program : workload(program);
  const Finished finished = node.heddle(command);
  EXPECT_THAT(finished.status, AnyOf(0, 66)) << finished.out << finished.err << node.log();
  EXPECT_THAT(finished.err, HasSubstr("heddle: check: ")) << "it was not checked";
  EXPECT_THAT(finished.err, Not(HasSubstr("undeclared")));
}

INSTANTIATE_TEST_SUITE_P(Programs, DeclaredSets, testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace heddle::e2e
