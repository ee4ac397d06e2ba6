// The fuzzer's corpus and random messages, in the ordinary suite.

#include "daemon/testing/control_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace heddle::daemon::testing {
namespace {

std::vector<uint8_t> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ControlCase, TheCorpusLeavesTheBooksEven) {
  ControlCase control;
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_DAEMON_SOURCES "/corpus/control_fuzz")) {
    control.run(read(entry.path()));
    ++count;
  }
  EXPECT_GT(count, 0u);
}

// Mostly well-formed: real types, small numbers, addresses near the window, requests numbered as they should be.
TEST(ControlCase, RandomMessagesLeaveTheBooksEven) {
  ControlCase control;
  std::mt19937 random(17);
  constexpr uint16_t kTypes[] = {1, 2, 3, 4, 4, 4, 5, 5, 6, 7, 8, 9, 100, 300, 400, 501, 9999};
  for (int round = 0; round < 200; ++round) {
    std::vector<uint8_t> bytes;
    const size_t steps = 1 + random() % 12;
    uint64_t requests[] = {1, 1};
    for (size_t step = 0; step < steps; ++step) {
      const uint16_t type = kTypes[random() % std::size(kTypes)];
      const uint8_t who = static_cast<uint8_t>(random() % 4);
      uint64_t words[8] = {};
      words[0] = 1 + random() % 4;
      words[1] = 0x10000000000 + random() % 40 * 2 * kMiB;
      words[2] = (1 + random() % 20) * 2 * kMiB;
      words[3] = 1 + random() % 2;
      words[4] = random() % 3;
      if (type != 4) words[1] = random() % 2, words[2] = random() % 500;
      const auto put = [&](const void* data, size_t size) {
        const auto* from = static_cast<const uint8_t*>(data);
        bytes.insert(bytes.end(), from, from + size);
      };
      constexpr uint16_t kRequests[] = {2, 4, 7, 8, 9};
      const bool is_request = std::find(std::begin(kRequests), std::end(kRequests), type) != std::end(kRequests);
      const uint64_t number = random() % 8 != 0 ? ++requests[who % 2] : random() % 3;
      const uint16_t length = sizeof words + (is_request ? sizeof number : 0);
      put(&who, 1);
      put(&type, 2);
      put(&length, 2);
      if (is_request) put(&number, sizeof number);
      put(words, sizeof words);
    }
    control.run(bytes);
  }
}

}  // namespace
}  // namespace heddle::daemon::testing
