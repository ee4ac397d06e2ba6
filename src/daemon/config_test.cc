#include "daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace heddle::daemon {
namespace {

TEST(Config, WithoutAFileThereAreTwoUnpacedDevicesThatFitTheMachine) {
  const Config config = default_config();
  ASSERT_EQ(config.devices.size(), 2u);
  EXPECT_EQ(config.devices[0].model.slowdown, 0);
  EXPECT_GT(config.devices[0].model.memory_bytes, 0u);
  EXPECT_EQ(config.devices[0].model.memory_bytes % (2 * kMiB), 0u);
  EXPECT_GE(config.devices[0].host_threads, 1u);
  EXPECT_EQ(config.windows.size(), 3u);
}

TEST(Config, AnEmptyFileIsNoFile) {
  const auto config = parse_config("", "f");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->devices.size(), 2u);
}

TEST(Config, DevicesAreCountedAndOverridden) {
  const auto config = parse_config(R"(
[[device]]
preset = "V100"
count = 3
memory = "1G"
sms = 8
slowdown = 20.5
sharing = "time-sliced"
shared_faults = true
[[device]]
preset = "P100"
)",
                                   "f");
  ASSERT_TRUE(config) << config.error().text;
  ASSERT_EQ(config->devices.size(), 4u);
  EXPECT_EQ(config->devices[2].model.sms, 8u);
  EXPECT_EQ(config->devices[2].model.memory_bytes, kGiB);
  EXPECT_EQ(config->devices[2].model.slowdown, 20.5);
  EXPECT_EQ(config->devices[2].model.sharing, Sharing::kTimeSliced);
  EXPECT_TRUE(config->devices[2].shared_faults);
  EXPECT_STREQ(config->devices[3].model.model, "P100");
  EXPECT_NE(config->devices[2].model.pci_bus, config->devices[1].model.pci_bus);
}

struct Mistake {
  const char* text;
  const char* place;  // file, line and key
  const char* why;
};

class ConfigMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(ConfigMistake, IsNamedWithItsPlace) {
  const auto config = parse_config(GetParam().text, "heddle.toml");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().text, ::testing::HasSubstr(GetParam().place));
  EXPECT_THAT(config.error().text, ::testing::HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, ConfigMistake,
    ::testing::Values(
        Mistake{"[daemon]\n\npolicy = \"best\"", "heddle.toml:3: daemon.policy", "mgb-warps"},
        Mistake{"[daemon]\npolicy = 3", "heddle.toml:2: daemon.policy", "text in quotes"},
        Mistake{"[daemon]\nplocy = \"sa\"", "heddle.toml:2: daemon.plocy", "no such key"},
        Mistake{"[demon]\n", "heddle.toml:1", "demon"}, Mistake{"x = 1", "heddle.toml:1", "x"},
        Mistake{"daemon = 1", "heddle.toml:1", "[daemon]"},
        Mistake{"[device]\npreset = \"P100\"", "heddle.toml:1", "[[device]]"},
        Mistake{"[daemon]\nage_limit = 2", "heddle.toml:2: daemon.age_limit", "duration"},
        Mistake{"[daemon]\nwarm_workers = -1", "heddle.toml:2: daemon.warm_workers", "whole number"},
        Mistake{"[daemon]\nring_bulk = \"3M\"", "heddle.toml:2: daemon.ring_bulk", "power of two"},
        Mistake{"[limits]\nsessions = 0", "heddle.toml:2: limits.sessions", "from 1"},
        Mistake{"[limits]\nweight_of_job = 0.5", "heddle.toml:2: limits.weight_of_job", "at least 1"},
        Mistake{"[limits]\nshare_of_job = 2", "heddle.toml:2: limits.share_of_job", "at most 1"},
        Mistake{"[limits]\nmodule = \"lots\"", "heddle.toml:2: limits.module", "lots"},
        Mistake{"[[window]]\nbase = 4097\ndevice = \"2M\"", "heddle.toml:2: window.base", "2 MiB"},
        Mistake{"[[window]]\nbase = 0x7f0000000000\ndevice = \"2T\"", "window.base", "47 bits"},
        Mistake{"[[device]]\ncount = 1", "device.preset", "P100"},
        Mistake{"[[device]]\npreset = \"K80\"", "heddle.toml:2: device.preset", "K80"},
        Mistake{"[[device]]\npreset = \"P100\"\nmemory = \"3K\"", "heddle.toml:3: device.memory", "2 MiB"},
        Mistake{"[[device]]\npreset = \"P100\"\nslowdown = -1", "heddle.toml:3: device.slowdown", "from 0"},
        Mistake{"[[device]]\npreset = \"P100\"\nslowdown = nan", "heddle.toml:3: device.slowdown", "from 0"},
        Mistake{"[[device]]\npreset = \"P100\"\nsharing = \"none\"", "heddle.toml:3: device.sharing", "time-sliced"},
        Mistake{"[[device]]\npreset = \"P100\"\ncount = 1024\n[[device]]\npreset = \"P100\"", "device.count", "1024"},
        Mistake{"[dispatch]\npolicy = \"best\"", "heddle.toml:2: dispatch.policy", "known policies: open, fs"},
        Mistake{"[dispatch]\npolicy = \"las:0\"", "heddle.toml:2: dispatch.policy", "from 1 to 48"},
        Mistake{"[daemon]\ninput_log = \"/tmp/x\"\n[dispatch]\npolicy = \"fifo\"", "daemon.input_log", "fifo"},
        Mistake{"[dispatch]\nbatch_sms = 101", "heddle.toml:2: dispatch.batch_sms", "100"},
        Mistake{"[dispatch]\nreturn_limit = \"0s\"", "heddle.toml:2: dispatch.return_limit", "more than 0"},
        Mistake{"[durability]\nlevel = \"some\"", "heddle.toml:2: durability.level", "none of off, long, auto, full"},
        Mistake{"[durability]\nlong_from = \"0s\"", "heddle.toml:2: durability.long_from", "more than 0"},
        Mistake{"[durability]\nundo = \"1K\"", "heddle.toml:2: durability.undo", "2M to 64G"},
        Mistake{"[daemon\n", "heddle.toml:1", ""}));

TEST(Config, AMissingFileIsNamed) {
  EXPECT_THAT(load_config("/nowhere/heddle.toml").error().text, ::testing::HasSubstr("/nowhere/heddle.toml"));
}

TEST(Config, OneProgramMayPinAsMuchAsAll) {
  const Limits machine = default_config().limits;
  EXPECT_GT(machine.host_of_session.value, 0u);
  EXPECT_EQ(machine.host_of_session, machine.host_total);
  EXPECT_EQ(parse_config("[limits]\nhost_total = \"8G\"", "heddle.toml")->limits.host_of_session, Bytes{8 * kGiB});
  EXPECT_EQ(parse_config("[limits]\nhost_of_session = \"4M\"", "heddle.toml")->limits.host_of_session, Bytes{4 * kMiB});
}

TEST(Config, SwapSpaceIsAQuarterOfTheMachineUnlessSaid) {
  EXPECT_EQ(*default_config().swap.host, Bytes{default_config().limits.host_total.value / 2});
  EXPECT_EQ(*parse_config("[swap]\nhost = \"3G\"", "heddle.toml")->swap.host, Bytes{3 * kGiB});
  EXPECT_EQ(*parse_config("[swap]\nhost = 0", "heddle.toml")->swap.host, Bytes{});
  EXPECT_EQ(parse_config("[swap]\nidle = \"0s\"", "heddle.toml")->swap.idle, Duration::zero());
}

TEST(Config, HalfOfSwapSpaceStaysPinnedUnlessSaid) {
  EXPECT_EQ(*default_config().swap.pinned, Bytes{default_config().swap.host->value / 2});
  EXPECT_EQ(*parse_config("[swap]\nhost = \"3G\"", "heddle.toml")->swap.pinned, Bytes{3 * kGiB / 2});
  EXPECT_EQ(*parse_config("[swap]\npinned = \"1G\"", "heddle.toml")->swap.pinned, Bytes{kGiB});
  EXPECT_EQ(*parse_config("[swap]\npinned = 0", "heddle.toml")->swap.pinned, Bytes{});
}

// The example documents every key with its default, so it must load and change nothing.
TEST(Config, TheExampleShowsTheDefaults) {
  const auto example = load_config(HEDDLE_EXAMPLE_CONFIG);
  ASSERT_TRUE(example) << example.error().text;
  const Config config = default_config();
  EXPECT_EQ(example->policy, config.policy);
  EXPECT_EQ(example->age_limit, config.age_limit);
  EXPECT_EQ(example->log_level, config.log_level);
  EXPECT_EQ(example->input_log, config.input_log);
  EXPECT_EQ(example->input_log_limit, config.input_log_limit);
  EXPECT_EQ(example->history, config.history);
  EXPECT_EQ(example->warm_workers, config.warm_workers);
  EXPECT_EQ(example->trace_events, config.trace_events);
  EXPECT_EQ(example->managed_memory, config.managed_memory);
  EXPECT_EQ(example->worker_start_timeout, config.worker_start_timeout);
  EXPECT_EQ(example->worker_exit_grace, config.worker_exit_grace);
  EXPECT_EQ(example->reconnect_grace, config.reconnect_grace);
  EXPECT_EQ(example->worker_reconnect_for, config.worker_reconnect_for);
  EXPECT_EQ(example->dispatch.policy, config.dispatch.policy);
  EXPECT_EQ(example->dispatch.window, config.dispatch.window);
  EXPECT_EQ(example->dispatch.batch_sms, config.dispatch.batch_sms);
  EXPECT_EQ(example->dispatch.return_limit, config.dispatch.return_limit);
  EXPECT_EQ(example->durability.level, config.durability.level);
  EXPECT_EQ(example->durability.long_from, config.durability.long_from);
  EXPECT_EQ(example->durability.undo, config.durability.undo);
  EXPECT_EQ(example->ring.records, config.ring.records);
  EXPECT_EQ(example->ring.bulk, config.ring.bulk);
  EXPECT_EQ(example->limits.sessions, config.limits.sessions);
  EXPECT_EQ(example->limits.weight_of_job, config.limits.weight_of_job);
  EXPECT_EQ(example->limits.share_of_job, config.limits.share_of_job);
  EXPECT_EQ(example->limits.share_per_user, config.limits.share_per_user);
  EXPECT_EQ(example->limits.module, config.limits.module);
  EXPECT_EQ(example->swap.host, config.swap.host);
  EXPECT_EQ(example->swap.pinned, config.swap.pinned);
  EXPECT_EQ(example->swap.idle, config.swap.idle);
  EXPECT_EQ(example->limits.host_total, config.limits.host_total);
  EXPECT_EQ(example->limits.host_of_session, config.limits.host_of_session);
  ASSERT_EQ(example->windows.size(), config.windows.size());
  for (size_t i = 0; i < config.windows.size(); ++i) {
    EXPECT_EQ(example->windows[i].base, config.windows[i].base);
    EXPECT_EQ(example->windows[i].device_bytes, config.windows[i].device_bytes);
    EXPECT_EQ(example->windows[i].host_bytes, config.windows[i].host_bytes);
  }
  DeviceModel p100 = *device_preset("P100");
  EXPECT_EQ(example->devices[0].model.sms, p100.sms);
  EXPECT_EQ(example->devices[0].model.memory_bytes_per_s, p100.memory_bytes_per_s);
  EXPECT_EQ(example->devices[0].model.launch_latency_ns, p100.launch_latency_ns);
}

// Every key that the readers know stands in the example, those of GPUs as comments.
TEST(Config, TheExampleHasEveryKey) {
  std::ifstream file(HEDDLE_EXAMPLE_CONFIG);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const char* source : {"config.cc", "device_tables.cc"}) {
    std::ifstream code(std::string(HEDDLE_DAEMON_SOURCES "/") + source);
    ASSERT_TRUE(code);
    for (std::string line; std::getline(code, line);) {
      const bool reads =
          line.find("reader.read") != std::string::npos || line.find("&DeviceModel::") != std::string::npos;
      const size_t begin = line.find('"'), end = line.find('"', begin + 1);
      if (!reads || end == std::string::npos) continue;
      const std::string key = line.substr(begin + 1, end - begin - 1) + " = ";
      EXPECT_THAT(text, ::testing::AnyOf(::testing::HasSubstr("\n" + key), ::testing::HasSubstr("\n# " + key)));
    }
  }
}

TEST(Config, WorkersMayHaveUidsOfTheirOwn) {
  const auto config = parse_config("[daemon]\nworker_uids = \"200000-200511\"\n", "x");
  ASSERT_TRUE(config) << config.error().text;
  EXPECT_EQ(config->worker_uids.first, 200000u);
  EXPECT_EQ(config->worker_uids.count, 512u);
  for (const char* wrong : {"200000", "5-4", "0-10", "7-7", "a-b", "1-4294967295", "1-2-3", " 1-2"}) {
    const auto refused = parse_config(std::string("[daemon]\nworker_uids = \"") + wrong + "\"\n", "x");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().text, ::testing::HasSubstr("is no range like")) << wrong;
  }
  const auto both = parse_config("[daemon]\nworker_user = \"nobody\"\nworker_uids = \"5-9\"\n", "x");
  EXPECT_FALSE(both);
}

}  // namespace
}  // namespace heddle::daemon
