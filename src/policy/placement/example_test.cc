// The placement example of docs/writing-a-policy.md: compiled and exercised. What the page quotes of both examples is
// compared with them here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "policy/placement/placement.h"
#include "policy/placement/reasons.h"
#include "policy/scheduler.h"
#include "policy/test_pool.h"
#include "policy/text.h"

namespace heddle::policy {

// The device with the most memory free; ties go to the lower id. Memory is a hard constraint, compute is not looked at.
class Roomiest : public Placement {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Roomiest>(*this); }

  Answer place(const Request& request, const Pool& pool) const override {
    const auto devices = candidates(request.model, pool);
    std::optional<DeviceId> best;
    for (const DeviceId device : devices) {
      if (!pool.fits(request, device)) continue;
      if (!best || pool.free(device) > pool.free(*best)) best = device;
    }
    if (!best) return NotNow{why_no_memory(request, devices, pool)};
    return Placed{*best, text("most memory free on ", *best, " (", pool.free(*best), ")")};
  }
};

namespace {

TEST(Roomiest, TakesTheDeviceWithTheMostMemoryFree) {
  auto devices = p100s(3);
  devices[1].memory = gib(32);
  Scheduler scheduler(std::make_unique<Roomiest>(), devices);
  scheduler.session_opened({1}, {1}, "p100", {}, at(0));
  for (const uint64_t task : {1, 2}) scheduler.task_arrived({{task}, {1}, {1}, 0, "", gib(10), {}}, at(0));
  const auto decided = scheduler.decisions(at(0));
  ASSERT_EQ(decided.size(), 2u);
  EXPECT_EQ(decided[0].reason, "most memory free on 1 (32 GiB)");
  EXPECT_EQ(decided[1].device, DeviceId{1});
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(WritingAPolicy, QuotesWhatIsTested) {
  const std::string page = contents(HEDDLE_POLICY_PAGE);
  const std::string examples = HEDDLE_POLICY_EXAMPLES;
  const std::string source =
      contents(examples + "/placement/example_test.cc") + contents(examples + "/dispatch/example_test.cc");
  ASSERT_FALSE(page.empty());
  static constexpr std::string_view kBegin = "```cpp\n";
  size_t quotes = 0;
  for (size_t begin = page.find(kBegin); begin != std::string::npos; begin = page.find(kBegin, begin + 1)) {
    const size_t from = begin + kBegin.size();
    EXPECT_THAT(source, testing::HasSubstr(page.substr(from, page.find("```", from) - from)));
    ++quotes;
  }
  EXPECT_EQ(quotes, 4u);
}

}  // namespace
}  // namespace heddle::policy
