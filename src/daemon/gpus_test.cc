#include "daemon/gpus.h"

#include <gmock/gmock.h>

namespace heddle::daemon {
namespace {

using ::testing::HasSubstr;

std::string line(const std::string& uuid, uint64_t free = 140 * kGiB) {
  return "uuid=" + uuid +
         "\tpci=0000:1b:00.0\tname=NVIDIA H200\tmodel=NVIDIA H200\tmemory=150323855360\tfree=" + std::to_string(free) +
         "\tcontext=545259520\tvirtual_memory=1\tsms=132\tmax_threads_per_sm=2048\tmax_blocks_per_sm=32\t"
         "registers_per_sm=65536\tshared_bytes_per_sm=233472\tshared_bytes_per_block=49152\t"
         "shared_bytes_per_block_optin=232448\tshared_bytes_reserved_per_block=1024\tmax_threads_per_block=1024\twarp_"
         "size=32\tregisters_per_block=65536\t"
         "capability_major=9\tcapability_minor=0\tclock_khz=1980000\tmemory_clock_khz=3201000\tmemory_bus_bits=6144\t"
         "l2_bytes=62914560\tcopy_engines=3\tpci_bus=27\tdriver=13000\tof_tomorrow=7\n";
}

std::vector<FoundGpu> two_gpus() {
  return *parse_gpu_list(line("GPU-a") + line("GPU-b"));
}

TEST(GpuList, ALineIsAGpu) {
  const auto gpus = parse_gpu_list(line("GPU-a") + line("GPU-b"));
  ASSERT_TRUE(gpus) << gpus.error().text;
  ASSERT_EQ(gpus->size(), 2u);
  const FoundGpu& gpu = gpus->back();
  EXPECT_EQ(gpu.uuid, "GPU-b");
  EXPECT_STREQ(gpu.model.name, "NVIDIA H200");
  EXPECT_EQ(gpu.model.kind, DeviceKind::kCuda);
  EXPECT_EQ(gpu.model.sms, 132u);
  EXPECT_EQ(gpu.model.max_warps_per_sm(), 64u);
  EXPECT_EQ(gpu.context.value, 520 * kMiB);
  EXPECT_TRUE(gpu.virtual_memory);
}

TEST(GpuList, NothingIsNoGpu) {
  EXPECT_TRUE(parse_gpu_list("")->empty());
}

TEST(GpuList, HalfALineIsAnErrorThatShowsIt) {
  const auto gpus = parse_gpu_list("uuid=GPU-a\tpci=0000:1b:00.0\n");
  ASSERT_FALSE(gpus);
  EXPECT_THAT(gpus.error().text, HasSubstr("uuid=GPU-a"));
  EXPECT_FALSE(parse_gpu_list("uuid=GPU-a\tsms=many\n"));
}

TEST(GpuPool, WithoutTablesAllGpusTakeTheSoftwareDevicesPlace) {
  Config config = default_config();
  ASSERT_TRUE(add_gpus(config, two_gpus()));
  ASSERT_EQ(config.devices.size(), 2u);
  EXPECT_EQ(config.devices[0].uuid, "GPU-a");
  EXPECT_EQ(config.devices[0].model.kind, DeviceKind::kCuda);
  EXPECT_LT(config.devices[0].model.memory_bytes, 140 * kGiB) << "the driver needs some";
  EXPECT_EQ(config.devices[0].model.context_bytes, 520 * kMiB);
}

TEST(GpuPool, TheContextsOfWarmWorkersAreNotPromised) {
  Config config = default_config();
  config.warm_workers = 0;
  ASSERT_TRUE(add_gpus(config, two_gpus()));
  const uint64_t without = config.devices[0].model.memory_bytes;
  config = default_config();
  config.warm_workers = 3;
  ASSERT_TRUE(add_gpus(config, two_gpus()));
  EXPECT_EQ(config.devices[0].model.memory_bytes, without - 3 * 520 * kMiB);
}

TEST(GpuPool, TablesChooseAndLimit) {
  auto config = parse_config("[[gpu]]\nindex = 1\nmemory = \"16G\"\ncontext_memory = \"0\"\nmps = \"off\"\n", "f");
  ASSERT_TRUE(config) << config.error().text;
  ASSERT_TRUE(add_gpus(*config, two_gpus()));
  ASSERT_EQ(config->devices.size(), 1u);
  EXPECT_EQ(config->devices[0].uuid, "GPU-b");
  EXPECT_EQ(config->devices[0].model.memory_bytes, 16 * kGiB);
  EXPECT_EQ(config->devices[0].model.context_bytes, 0u);
  EXPECT_EQ(config->devices[0].mps, MpsMode::kOff);
}

TEST(GpuPool, SoftwareDevicesThatWereNamedStay) {
  auto config = parse_config("[[device]]\npreset = \"P100\"\n[[gpu]]\nuuid = \"GPU-a\"\n", "f");
  ASSERT_TRUE(config) << config.error().text;
  ASSERT_TRUE(add_gpus(*config, two_gpus()));
  ASSERT_EQ(config->devices.size(), 2u);
  EXPECT_EQ(config->devices[0].model.kind, DeviceKind::kSoftware);
}

TEST(GpuPool, AGpuThatIsNotThereIsAnError) {
  auto config = parse_config("[[gpu]]\nindex = 5\n", "f");
  ASSERT_TRUE(config);
  const auto added = add_gpus(*config, two_gpus());
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text, HasSubstr("index 5"));
}

TEST(GpuPool, MpsIsForWhoOutlivesAFaultUnlessTheTableSaysOtherwise) {
  auto config = parse_config("[[gpu]]\nindex = 0\n[[gpu]]\nindex = 1\nmps = \"on\"\n", "f");
  ASSERT_TRUE(config) << config.error().text;
  ASSERT_TRUE(add_gpus(*config, two_gpus()));
  EXPECT_EQ(config->devices[0].mps, MpsMode::kAuto);
  EXPECT_EQ(config->devices[1].mps, MpsMode::kOn);
}

TEST(GpuPool, WithoutTablesAFullGpuIsLeftOut) {
  Config config = default_config();
  ASSERT_TRUE(add_gpus(config, *parse_gpu_list(line("GPU-a", 600 * kMiB) + line("GPU-b", 100 * kGiB))));
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].uuid, "GPU-b");
}

TEST(GpuPool, WithoutTablesAndAUsableGpuTheSoftwareDevicesStay) {
  Config config = default_config();
  const auto added = add_gpus(config, *parse_gpu_list(line("GPU-a", 600 * kMiB)));
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text, HasSubstr("600 MiB free"));
  EXPECT_EQ(config.devices.size(), default_config().devices.size());
}

TEST(GpuPool, OffIsSaidInTheConfiguration) {
  EXPECT_TRUE(default_config().use_gpus);
  EXPECT_FALSE(parse_config("[daemon]\ngpus = \"off\"\n", "f")->use_gpus);
  EXPECT_FALSE(parse_config("[daemon]\ngpus = \"some\"\n", "f"));
}

TEST(GpuPool, AGpuThatIsFullIsAnErrorThatSaysSo) {
  auto config = parse_config("[[gpu]]\n", "f");
  ASSERT_TRUE(config);
  const auto added = add_gpus(*config, *parse_gpu_list(line("GPU-a", 600 * kMiB)));
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().text, HasSubstr("600 MiB free"));
}

TEST(GpuPool, WrongValuesNameTheirKey) {
  const auto config = parse_config("[[gpu]]\nmps = \"perhaps\"\n", "f");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().text, HasSubstr("mps"));
}

}  // namespace
}  // namespace heddle::daemon
