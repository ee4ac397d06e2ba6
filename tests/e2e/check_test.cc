// heddle run --check: what a user sees of mistakes in kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "node.h"

namespace heddle::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kProgram = HEDDLE_E2E_PROGRAMS "/careless";

// "careless.cu:17", where that line has the comment.
std::string source_line(const std::string& comment) {
  std::ifstream source(HEDDLE_E2E_SOURCES "/programs/careless.cu");
  std::string line;
  for (int number = 1; std::getline(source, line); ++number)
    if (line.find("// " + comment) != std::string::npos) return "careless.cu:" + std::to_string(number);
  return "no line with " + comment;
}

struct Check : testing::Test {
  void SetUp() override {
    HEDDLE_NEEDS_WORKLOADS();
    ASSERT_TRUE(node.ready()) << node.why();
  }
  Finished run_checked(const std::string& which) { return node.heddle({"run", "--check", "--", kProgram, which}); }
  Node node;
};

TEST_F(Check, TellsARaceOnceAndEndsWithAStatusOfItsOwn) {
  const Finished finished = run_checked("race");
  EXPECT_EQ(finished.status, 66) << finished.err;
  EXPECT_EQ(finished.out, "no error\n");
  EXPECT_THAT(finished.err, AllOf(HasSubstr("heddle: check: race on shared memory at 0x"), HasSubstr(", block "),
                                  HasSubstr(source_line("RACE")), HasSubstr("heddle: check: 1 finding\n")));
}

TEST_F(Check, FindsNothingInWhatIsMended) {
  for (const char* which : {"mended", "filled", "copied"}) {
    const Finished finished = run_checked(which);
    EXPECT_EQ(finished.status, 0) << finished.err;
    EXPECT_THAT(finished.err, AllOf(HasSubstr("heddle: check: 0 findings\n"), Not(HasSubstr("memory at"))));
  }
}

TEST_F(Check, TellsReadsOfWhatNobodyWrote) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"shared", "SHARED"}, {"local", "LOCAL"}, {"global", "GLOBAL"}};
  for (const auto& [which, comment] : kMistakes) {
    const Finished finished = run_checked(which);
    EXPECT_EQ(finished.status, 66) << finished.err;
    EXPECT_THAT(finished.err, AllOf(HasSubstr("uninitialised " + std::string(which) + " memory at 0x"),
                                    HasSubstr(source_line(comment)), HasSubstr("heddle: check: 1 finding\n")));
  }
}

TEST_F(Check, TellsAccessesToWhatNoParameterLeadsTo) {
  const std::pair<const char*, const char*> kMistakes[] = {{"write", "STRAY WRITE"}, {"read", "STRAY READ"}};
  for (const auto& [what, comment] : kMistakes) {
    const Finished finished = run_checked("stray_" + std::string(what));
    EXPECT_EQ(finished.status, 66) << finished.err;
    EXPECT_THAT(finished.err, AllOf(HasSubstr("undeclared " + std::string(what) + " of global memory at 0x"),
                                    HasSubstr(source_line(comment)), HasSubstr("heddle: check: 1 finding\n")));
  }
}

TEST_F(Check, IsOffUnlessAskedForByOptionOrEnvironment) {
  EXPECT_THAT(node.run({kProgram, "race"}).err, Not(HasSubstr("check")));
  const Finished finished =
      node.heddle({"run", "--", "env", "HEDDLE_CHECK=1", kProgram, "race"});  // the program alone is told
  EXPECT_EQ(finished.status, 0);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("race on shared memory"), Not(HasSubstr("finding\n"))));
  const Finished unclear = node.run({"env", "HEDDLE_CHECK=yes", kProgram, "race"});
  EXPECT_EQ(unclear.status, 1);
  EXPECT_THAT(unclear.err, HasSubstr("HEDDLE_CHECK is 'yes'"));
}

}  // namespace
}  // namespace heddle::e2e
