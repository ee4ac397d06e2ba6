// Replays what the fuzzer found worth keeping.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "worker/testing/ring_case.h"

namespace heddle::worker {
namespace {

TEST(RingCorpus, EveryCaseIsSurvived) {
  size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_RING_CORPUS)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input(std::istreambuf_iterator<char>(file), {});
    run_ring_case(input);
    ++cases;
  }
  EXPECT_GT(cases, 0u);
}

}  // namespace
}  // namespace heddle::worker
