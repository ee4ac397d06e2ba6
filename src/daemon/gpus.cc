#include "daemon/gpus.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>

#include "protocol/socket.h"

namespace heddle::daemon {
namespace {

constexpr uint64_t kStep = 2 * kMiB;
// Left to the driver on each GPU: what its contexts allocate later and no program is charged for (module code, sums too
// small to charge). The contexts of
// warm and kept workers, which nobody is charged for, come on top.
constexpr uint64_t kHeadroom = 256 * kMiB;

struct GpuCount {
  std::string_view key;
  uint32_t DeviceModel::*field;
};
constexpr GpuCount kGpuCounts[] = {
    {"sms", &DeviceModel::sms},
    {"max_threads_per_sm", &DeviceModel::max_threads_per_sm},
    {"max_blocks_per_sm", &DeviceModel::max_blocks_per_sm},
    {"registers_per_sm", &DeviceModel::registers_per_sm},
    {"shared_bytes_per_sm", &DeviceModel::shared_bytes_per_sm},
    {"shared_bytes_per_block", &DeviceModel::shared_bytes_per_block},
    {"shared_bytes_per_block_optin", &DeviceModel::shared_bytes_per_block_optin},
    {"shared_bytes_reserved_per_block", &DeviceModel::shared_bytes_reserved_per_block},
    {"max_threads_per_block", &DeviceModel::max_threads_per_block},
    {"warp_size", &DeviceModel::warp_size},
    {"registers_per_block", &DeviceModel::registers_per_block},
    {"capability_major", &DeviceModel::capability_major},
    {"capability_minor", &DeviceModel::capability_minor},
    {"clock_khz", &DeviceModel::clock_khz},
    {"memory_clock_khz", &DeviceModel::memory_clock_khz},
    {"memory_bus_bits", &DeviceModel::memory_bus_bits},
    {"l2_bytes", &DeviceModel::l2_bytes},
    {"copy_engines", &DeviceModel::copy_engines},
    {"pci_bus", &DeviceModel::pci_bus},
};

using Words = std::map<std::string_view, std::string_view>;

Words split(std::string_view line) {
  Words words;
  while (!line.empty()) {
    const size_t end = std::min(line.find('\t'), line.size());
    const std::string_view word = line.substr(0, end);
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos) words[word.substr(0, equals)] = word.substr(equals + 1);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

bool read(const Words& words, std::string_view key, uint64_t& value) {
  const auto found = words.find(key);
  if (found == words.end()) return false;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  return error == std::errc() && stop == end;
}

bool read(const Words& words, std::string_view key, std::string& value) {
  const auto found = words.find(key);
  if (found == words.end() || found->second.empty()) return false;
  value = found->second;
  return true;
}

Result<FoundGpu> parse_line(std::string_view line) {
  const Words words = split(line);
  FoundGpu gpu;
  std::string name, model;
  uint64_t virtual_memory = 0;
  bool whole = read(words, "uuid", gpu.uuid) && read(words, "pci", gpu.pci) && read(words, "name", name) &&
               read(words, "model", model) && read(words, "memory", gpu.model.memory_bytes) &&
               read(words, "free", gpu.free.value) && read(words, "context", gpu.context.value) &&
               read(words, "virtual_memory", virtual_memory) && read(words, "driver", gpu.driver);
  for (const GpuCount& each : kGpuCounts) {
    uint64_t count = 0;
    whole = whole && read(words, each.key, count) && count <= UINT32_MAX;
    gpu.model.*each.field = static_cast<uint32_t>(count);
  }
  if (!whole || gpu.model.sms == 0 || gpu.model.warp_size == 0)
    return fail(ErrorCode::kCorrupt, "'%.*s' does not describe a GPU", static_cast<int>(line.size()), line.data());
  gpu.virtual_memory = virtual_memory != 0;
  gpu.model.kind = DeviceKind::kCuda;
  gpu.model.slowdown = gpu.model.copy_slowdown = 1;
  protocol::set_text(gpu.model.name, name);
  protocol::set_text(gpu.model.model, model);
  return gpu;
}

bool wanted(const GpuConfig& config, const FoundGpu& gpu, size_t index) {
  if (!config.uuid.empty()) return config.uuid == gpu.uuid;
  return !config.index || *config.index == index;
}

// Those whose contexts nobody is charged for.
uint32_t unbound_workers(const Config& config) {
  return config.warm_workers + config.kept_workers;
}

Result<DeviceConfig> device_of(const GpuConfig& config, const FoundGpu& gpu, uint32_t unbound) {
  if (!gpu.virtual_memory)
    return fail(ErrorCode::kNotSupported, "%s (%s) cannot share memory as descriptors: heddle does not work on it",
                gpu.model.name, gpu.uuid.c_str());
  DeviceConfig device{gpu.model, false, 1, gpu.uuid, config.mps, config.variables_stay};
  const uint64_t reserved = kHeadroom + unbound * gpu.context.value;
  const uint64_t most = gpu.free.value > reserved ? gpu.free.value - reserved : 0;
  const uint64_t limit = config.memory.value > 0 ? std::min(config.memory.value, most) : most;
  device.model.memory_bytes = limit / kStep * kStep;
  device.context = gpu.context;
  device.model.context_bytes = round_up((config.context ? *config.context : gpu.context).value, kStep);
  if (device.model.memory_bytes <= device.model.context_bytes)
    return fail(
        ErrorCode::kOutOfMemory,
        "%s (%s) has %s free, and %u warm and kept workers and the driver take %s of it: nothing is left to programs",
        gpu.model.name, gpu.uuid.c_str(), to_string(gpu.free).c_str(), unbound, to_string(Bytes{reserved}).c_str());
  return device;
}

// All that can be used. The configuration is as it was where there is none.
Status replace_software_devices(Config& config, const std::vector<FoundGpu>& found) {
  std::vector<DeviceConfig> usable;
  std::string unusable;
  for (const FoundGpu& each : found) {
    auto device = device_of({}, each, unbound_workers(config));
    if (device) {
      usable.push_back(std::move(*device));
    } else {
      unusable += (unusable.empty() ? "" : "; ") + device.error().text;
    }
  }
  if (usable.empty()) return fail(ErrorCode::kNotFound, "%s", unusable.empty() ? "there is none" : unusable.c_str());
  config.devices = std::move(usable);
  return {};
}

}  // namespace

Result<std::vector<FoundGpu>> parse_gpu_list(std::string_view text) {
  std::vector<FoundGpu> gpus;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) {
      auto gpu = parse_line(text.substr(0, end));
      if (!gpu) return tl::unexpected(std::move(gpu).error());
      gpus.push_back(std::move(*gpu));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return gpus;
}

Result<std::string> list_gpus(const std::string& keeper) {
  std::FILE* output = ::popen(("'" + keeper + "' --list 2>&1").c_str(), "r");
  if (!output) return fail_errno(-1, "cannot start '%s'", keeper.c_str());
  std::string text;
  char piece[512];
  while (std::fgets(piece, sizeof piece, output)) text += piece;
  if (::pclose(output) == 0) return text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return fail(ErrorCode::kNotFound, "no GPU can be used: %s", text.c_str());
}

bool wants_gpus(const Config& config) {
  return !config.gpus.empty() || (!config.names_devices && config.use_gpus);
}

Status add_gpus(Config& config, const std::vector<FoundGpu>& found) {
  if (!config.names_devices) return replace_software_devices(config, found);
  for (const GpuConfig& each : config.gpus) {
    bool any = false;
    for (size_t i = 0; i < found.size(); ++i) {
      if (!wanted(each, found[i], i)) continue;
      auto device = device_of(each, found[i], unbound_workers(config));
      if (!device) return tl::unexpected(std::move(device).error());
      config.devices.push_back(std::move(*device));
      any = true;
    }
    if (!any)
      return fail(ErrorCode::kNotFound, "[[gpu]] %s: there are %zu GPUs, this is none of them",
                  each.uuid.empty() ? stringf("index %u", each.index.value_or(0)).c_str() : each.uuid.c_str(),
                  found.size());
  }
  return {};
}

}  // namespace heddle::daemon
