#include "daemon/device_tables.h"

#include <algorithm>
#include <thread>

#include "protocol/socket.h"

namespace heddle::daemon {
namespace {

constexpr uint32_t kMostAlike = 1024;
constexpr uint64_t kSegmentStep = 2 * kMiB;

struct CountKey {
  const char* key;
  uint32_t DeviceModel::*field;
  uint32_t least;
};
constexpr CountKey kCounts[] = {
    {"sms", &DeviceModel::sms, 1},
    {"max_threads_per_sm", &DeviceModel::max_threads_per_sm, 32},
    {"max_blocks_per_sm", &DeviceModel::max_blocks_per_sm, 1},
    {"registers_per_sm", &DeviceModel::registers_per_sm, 1},
    {"shared_bytes_per_sm", &DeviceModel::shared_bytes_per_sm, 0},
    {"shared_bytes_per_block", &DeviceModel::shared_bytes_per_block, 0},
    {"shared_bytes_per_block_optin", &DeviceModel::shared_bytes_per_block_optin, 0},
    {"shared_bytes_reserved_per_block", &DeviceModel::shared_bytes_reserved_per_block, 0},
    {"max_threads_per_block", &DeviceModel::max_threads_per_block, 1},
    {"registers_per_block", &DeviceModel::registers_per_block, 1},
    {"capability_major", &DeviceModel::capability_major, 1},
    {"capability_minor", &DeviceModel::capability_minor, 0},
    {"clock_khz", &DeviceModel::clock_khz, 1},
    {"memory_clock_khz", &DeviceModel::memory_clock_khz, 1},
    {"memory_bus_bits", &DeviceModel::memory_bus_bits, 1},
    {"l2_bytes", &DeviceModel::l2_bytes, 0},
    {"issue_per_cycle", &DeviceModel::issue_per_cycle, 1},
    {"copy_engines", &DeviceModel::copy_engines, 1},
    {"launch_latency_ns", &DeviceModel::launch_latency_ns, 0},
};

struct SizeKey {
  const char* key;
  uint64_t DeviceModel::*field;
};
constexpr SizeKey kSizes[] = {
    {"memory", &DeviceModel::memory_bytes},
    {"context_memory", &DeviceModel::context_bytes},
    {"memory_bytes_per_s", &DeviceModel::memory_bytes_per_s},
    {"copy_bytes_per_s", &DeviceModel::copy_bytes_per_s},
};

void read_sharing(TomlTable& reader, DeviceModel& model) {
  std::string sharing = model.sharing == Sharing::kTimeSliced ? "time-sliced" : "concurrent";
  reader.read("sharing", sharing);
  if (sharing == "concurrent") {
    model.sharing = Sharing::kConcurrent;
  } else if (sharing == "time-sliced") {
    model.sharing = Sharing::kTimeSliced;
  } else {
    reader.wrong("sharing", stringf("'%s' is none of concurrent, time-sliced", sharing.c_str()));
  }
}

void read_names(TomlTable& reader, DeviceModel& model) {
  std::string name = model.name, kind = model.model;
  reader.read("name", name);
  reader.read("model", kind);
  if (name.size() >= sizeof model.name) reader.wrong("name", stringf("at most %zu bytes", sizeof model.name - 1));
  if (kind.empty() || kind.size() >= sizeof model.model)
    reader.wrong("model", stringf("from 1 to %zu bytes", sizeof model.model - 1));
  protocol::set_text(model.name, name);
  protocol::set_text(model.model, kind);
}

void read_resources(TomlTable& reader, DeviceModel& model) {
  for (const CountKey& each : kCounts) reader.read(each.key, model.*each.field, each.least);
  for (const SizeKey& each : kSizes) {
    Bytes bytes{model.*each.field};
    reader.read(each.key, bytes);
    model.*each.field = bytes.value;
  }
  if (model.memory_bytes == 0 || model.memory_bytes % kSegmentStep != 0)
    reader.wrong("memory", "a positive multiple of 2 MiB is wanted");
  if (model.context_bytes >= model.memory_bytes) reader.wrong("context_memory", "it leaves no memory to programs");
  reader.read("slowdown", model.slowdown);
  reader.read("copy_slowdown", model.copy_slowdown);
}

}  // namespace

uint32_t default_host_threads(size_t devices) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<uint32_t>(std::max<size_t>(1, cores / std::max<size_t>(1, devices)));
}

Result<std::vector<DeviceConfig>> parse_devices(const toml::table& table, const std::string& file) {
  TomlTable reader(table, file, "device");
  std::string preset;
  reader.read("preset", preset);
  auto model = device_preset(preset);
  if (!model) {
    reader.wrong("preset", model.error().text);
    return tl::unexpected(reader.finish().error());
  }
  uint32_t count = 1;
  DeviceConfig device{*model, false, 0};
  reader.read("count", count, 1, kMostAlike);
  reader.read("shared_faults", device.shared_faults);
  reader.read("host_threads", device.host_threads, 1, kMostAlike);
  read_names(reader, device.model);
  read_resources(reader, device.model);
  read_sharing(reader, device.model);
  HEDDLE_TRY(reader.finish());
  return std::vector<DeviceConfig>(count, device);
}

Result<GpuConfig> parse_gpu(const toml::table& table, const std::string& file) {
  TomlTable reader(table, file, "gpu");
  GpuConfig gpu;
  uint32_t index = UINT32_MAX;
  Bytes context{UINT64_MAX};
  std::string mps = name_of(gpu.mps);
  reader.read("uuid", gpu.uuid);
  reader.read("index", index, 0, UINT32_MAX - 1);
  reader.read("memory", gpu.memory);
  reader.read("context_memory", context);
  reader.read("mps", mps);
  reader.read("variables_stay", gpu.variables_stay);
  if (index != UINT32_MAX) gpu.index = index;
  if (context.value != UINT64_MAX) gpu.context = context;
  gpu.mps = mps == "on" ? MpsMode::kOn : mps == "auto" ? MpsMode::kAuto : MpsMode::kOff;
  if (gpu.mps == MpsMode::kOff && mps != "off")
    reader.wrong("mps", stringf("'%s' is none of on, off, auto", mps.c_str()));
  if (!gpu.uuid.empty() && gpu.index) reader.wrong("index", "uuid says already which GPU");
  HEDDLE_TRY(reader.finish());
  return gpu;
}

}  // namespace heddle::daemon
