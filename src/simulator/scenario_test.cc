#include "simulator/scenario.h"

#include <gmock/gmock.h>

namespace heddle::simulator {
namespace {

using ::testing::HasSubstr;

TEST(Scenario, SaysWhatDevicesAndJobsThereAre) {
  const auto scenario = parse_scenario(R"(
policy = "sa"
dispatch = "fs"
workers = 4
processors = 16
horizon = "10s"
[[device]]
preset = "V100"
count = 3
memory = "8G"
slowdown = 2.5
[[job]]
name = "train"
weight = 2
memory = "1G"
more = "2G"
more_at = 20
bursts = 20
busy = "30ms"
host = "5ms"
before = "2s"
behind = "3s"
count = 7
every = "1s"
arrivals = "random"
repeats = true
)",
                                       "here");
  ASSERT_TRUE(scenario) << scenario.error().text;
  EXPECT_EQ(scenario->policy, "sa");
  EXPECT_EQ(scenario->dispatch, "fs");
  EXPECT_EQ(scenario->workers.most, 4u);
  EXPECT_FALSE(scenario->workers.automatic);
  ASSERT_EQ(scenario->devices.size(), 3u);
  EXPECT_STREQ(scenario->devices[2].model, "V100");
  EXPECT_EQ(scenario->devices[2].memory_bytes, 8 * kGiB);
  EXPECT_EQ(scenario->devices[2].slowdown, 2.5);
  ASSERT_EQ(scenario->jobs.size(), 1u);
  const JobLine& line = scenario->jobs[0];
  EXPECT_EQ(line.count, 7u);
  EXPECT_TRUE(line.random);
  EXPECT_EQ(line.shape.app, "train");
  EXPECT_EQ(line.shape.more, Bytes{2 * kGiB});
  EXPECT_EQ(line.shape.more_at, 20u);
  EXPECT_EQ(line.shape.kernel, Duration{});
  EXPECT_EQ(scenario->processors, 16u);
  EXPECT_EQ(line.shape.before, std::chrono::seconds(2));
  EXPECT_EQ(line.shape.behind, std::chrono::seconds(3));
}

TEST(Scenario, HasSwapSpaceForEagerLaunches) {
  const auto scenario = parse_scenario(R"(
eager_launch = true
eager_free = true
[swap]
host = "64G"
idle = "3s"
[[device]]
copy_bandwidth = 54000000000
[[job]]
busy = "1s"
bursts = 4
[[job.buffer]]
size = "3G"
[[job.buffer]]
size = "1G"
touched = "5G"
from = 2
until = 3
[[job]]
busy = "1s"
memory = "2G"
)",
                                       "here");
  ASSERT_TRUE(scenario) << scenario.error().text;
  EXPECT_TRUE(scenario->eager_launch);
  EXPECT_TRUE(scenario->eager_free);
  EXPECT_EQ(scenario->swap.host, Bytes{64 * kGiB});
  EXPECT_EQ(scenario->swap.idle, std::chrono::seconds(3));
  EXPECT_EQ(scenario->devices[0].copy_bytes_per_s, 54'000'000'000u);
  const JobShape& shape = scenario->jobs[0].shape;
  EXPECT_EQ(shape.memory, Bytes{4 * kGiB});
  ASSERT_EQ(shape.buffers.size(), 2u);
  EXPECT_EQ(shape.buffers[0].touched, Bytes{3 * kGiB});
  EXPECT_EQ(shape.buffers[0].from, 1u);
  EXPECT_EQ(shape.buffers[0].until, 4u);
  EXPECT_EQ(shape.buffers[1].touched, Bytes{5 * kGiB});
  EXPECT_EQ(shape.buffers[1].from, 2u);
  EXPECT_EQ(shape.buffers[1].until, 3u);
  EXPECT_TRUE(scenario->jobs[1].shape.buffers.empty());
  EXPECT_EQ(scenario->jobs[1].shape.memory, Bytes{2 * kGiB});
}

TEST(Scenario, SaysWhatIsWrongWithSwapSpaceAndBuffers) {
  const auto why = [](const std::string& root, const std::string& job) {
    const auto scenario = parse_scenario(root + "[[device]]\n[[job]]\nbusy = '1s'\nbursts = 4\n" + job, "here");
    return scenario ? std::string() : scenario.error().text;
  };
  EXPECT_THAT(why("eager_launch = true\n", ""), HasSubstr("here:1: scenario.eager_launch: it is true, but swap space"));
  EXPECT_THAT(why("swap = 3\n", ""), HasSubstr("'swap' is no table"));
  EXPECT_THAT(why("[swap]\nspace = '1G'\n", ""), HasSubstr("here:2: swap.space"));
  EXPECT_THAT(why("", "memory = '1G'\nbuffer = [{size = '2G'}]\n"),
              HasSubstr("job.memory: it is 1073741824 bytes, but the job's buffers have 2147483648"));
  EXPECT_THAT(why("", "buffer = [{touched = '2G'}]\n"), HasSubstr("job.buffer.size: it is 0"));
  EXPECT_THAT(why("", "buffer = [{size = '2G', until = 5}]\n"),
              HasSubstr("job.buffer.until: it is 5, but a whole number from 1 to 4 is wanted"));
  EXPECT_THAT(why("", "buffer = [{size = '2G', from = 3, until = 2}]\n"), HasSubstr("job.buffer.until"));
  EXPECT_THAT(why("", "buffer = [{size = '2G', from = 0}]\n"), HasSubstr("job.buffer.from"));
  EXPECT_THAT(why("", "buffer = 3\n"), HasSubstr("'buffer' is no list of tables"));
  EXPECT_THAT(why("", "buffer = [{size = 9223372036854775807}, {size = 9223372036854775807}, {size = 2}]\n"),
              HasSubstr("job.buffer.size"));
  const auto slow = parse_scenario("[[device]]\ncopy_bandwidth = 0\n[[job]]\nbusy = '1s'\n", "here");
  ASSERT_FALSE(slow);
  EXPECT_THAT(slow.error().text, HasSubstr("here:2: device.copy_bandwidth: it is 0"));
}

TEST(Scenario, WorkersAreANumberOrAuto) {
  const auto scenario = parse_scenario("workers = 'auto'\n[[device]]\n[[job]]\nbusy = '1ms'\n", "here");
  ASSERT_TRUE(scenario) << scenario.error().text;
  EXPECT_TRUE(scenario->workers.automatic);
  for (const char* text : {"auto", "0", "7", "4294967295"}) {
    const auto workers = parse_workers(text);
    ASSERT_TRUE(workers) << text;
    EXPECT_EQ(text_of(*workers), text);
  }
  for (const char* text : {"", "-1", "7 ", "4294967296", "Auto"}) EXPECT_FALSE(parse_workers(text)) << text;
}

class Wrong : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Wrong, IsToldWithItsPlace) {
  const auto& [text, why] = GetParam();
  const auto scenario = parse_scenario(text, "here");
  ASSERT_FALSE(scenario);
  EXPECT_THAT(scenario.error().text, HasSubstr(why));
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, Wrong,
    ::testing::Values(
        std::pair("[[job]]\nbusy = '1ms'\n", "here: no devices: add a [[device]] table"),
        std::pair("[[device]]\n", "here: no jobs"), std::pair("[device]\n", "'device' is no list of tables"),
        std::pair("[[device]]\npreset = 'P100\n", "here:2:"),
        std::pair("[[device]]\npreset = 'P1000'\n", "here:2: device.preset: "),
        std::pair("[[device]]\nslowdown = 0\n", "here:2: device.slowdown: simulated time needs one above 0"),
        std::pair("[[device]]\n[[job]]\n", "here:2: job.busy: "),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nlimit = 1.5\n", "here:4: job.limit: limit 1.5: "),
        std::pair("[[device]]\n[[job]]\nlimit = 0.009\nbusy = '1ms'\n",
                  "here:3: job.limit: limit 0.009: it is a part of the device, from 0.01 to 1"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nweight = 0.0001\n",
                  "here:4: job.weight: weight 0.0001: a job's weight is at least 0.001"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nlimit = 0.5\nshare = 0.6\n",
                  "here:5: job.share: share 0.6 is above limit 0.5"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nrepeats = true\n", "the scenario needs a horizon"),
        std::pair("workers = 'many'\n[[device]]\n[[job]]\nbusy = '1ms'\n",
                  "here:1: scenario.workers: it is 'many', but must be \"auto\" or a number"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nclass = 'urgent'\n",
                  "here:4: job.class: it is 'urgent', but must be user-facing or batch"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nslo = '1s'\n", "here:4: job.slo: batch jobs have none"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nclass = 'user-facing'\nslo = '0s'\n",
                  "here:5: job.slo: how long a request may take"),
        std::pair("[[device]]\n[[job]]\nbusy = '2ms'\nbusy_most = '1ms'\n",
                  "here:4: job.busy_most: it is 1 ms, but must not be below busy, 2 ms"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nmore = '1G'\nmore_at = 2\n",
                  "here:5: job.more_at: it is 2, but a whole number from 1 to 1 is wanted"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nmore_at = 1\n",
                  "here:4: job.more_at: it says when more memory is asked for, but not how much"),
        std::pair("[[device]]\n[[job]]\nbusy = '1ms'\nbuzy = 1\n", "buzy"),
        std::pair("polici = 'sa'\n[[device]]\n[[job]]\nbusy = '1ms'\n", "polici")));

}  // namespace
}  // namespace heddle::simulator
