#include "daemon/config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/toml_table.h"
#include "daemon/device_tables.h"
#include "policy/dispatch/table.h"
#include "policy/placement/table.h"

namespace heddle::daemon {
namespace {

constexpr uint64_t kStep = 2 * kMiB;  // of segments, and so of windows and device memory
constexpr size_t kLargestPool = 1024;
constexpr size_t kDefaultDevices = 2;

Bytes machine_memory() {
  return Bytes{static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE))};
}

// From the roomiest to the one that every sanitizer leaves free. The first lies above what NVIDIA's driver takes for
// itself with every context (64 MiB from 1 TiB on; driver 580.159). The last one ends below where the kernel begins to
// lay out libraries and stacks, at random in the uppermost 1 TiB.
std::vector<protocol::Window> default_windows() {
  constexpr uint64_t kTiB = 1024 * kGiB;
  return {{0x20000000000, 2 * kTiB, 64 * kGiB},
          {0x200000000000, 2 * kTiB, 64 * kGiB},
          {0x7e8000000000, 448 * kGiB, 32 * kGiB}};
}

// `devices` devices alike, P100 but for their memory: half of the machine's, among them.
std::vector<DeviceConfig> default_devices() {
  DeviceModel model = *device_preset("P100");
  const uint64_t share = machine_memory().value / 2 / kDefaultDevices;
  model.memory_bytes = std::clamp(share / kStep * kStep, kStep, model.memory_bytes);
  model.slowdown = model.copy_slowdown = 0;
  return std::vector<DeviceConfig>(kDefaultDevices, {model, false, 0});
}

// What depends on the machine and on the pool as a whole.
void complete(Config& config) {
  config.names_devices = !config.devices.empty() || !config.gpus.empty();
  if (!config.names_devices) config.devices = default_devices();
  if (config.windows.empty()) config.windows = default_windows();
  Limits& limits = config.limits;
  if (limits.host_total.value == 0) limits.host_total = Bytes{machine_memory().value / 2};
  // Half may be pinned, as above, and software devices by default have half: what is left is the programs' own.
  if (!config.swap.host) config.swap.host = Bytes{machine_memory().value / 4};
  // It helps where it is a whole program's memory, and nobody else has it meanwhile: a compromise.
  if (!config.swap.pinned) config.swap.pinned = Bytes{config.swap.host->value / 2};
  if (limits.host_of_session.value == 0) limits.host_of_session = limits.host_total;
  for (size_t i = 0; i < config.devices.size(); ++i) {
    DeviceConfig& device = config.devices[i];
    if (device.host_threads == 0) device.host_threads = default_host_threads(config.devices.size());
    device.model.pci_bus = static_cast<uint32_t>(i + 1);
  }
}

void read_ring_sizes(TomlTable& reader, protocol::RingSizes& ring) {
  reader.read("ring_records", ring.records);
  reader.read("ring_bulk", ring.bulk);
  const auto fits = [](Bytes size) {
    return (size.value & (size.value - 1)) == 0 && size.value >= 128 * kKiB && size.value <= 4 * kGiB;
  };
  if (!fits(ring.records)) reader.wrong("ring_records", "a power of two from 128K to 4G is wanted");
  if (!fits(ring.bulk)) reader.wrong("ring_bulk", "a power of two from 128K to 4G is wanted");
}

// "200000-200511"
std::optional<UidRange> parse_uids(const std::string& text) {
  uint32_t first = 0, last = 0;
  const char* end = text.data() + text.size();
  const auto [dash, wrong] = std::from_chars(text.data(), end, first);
  if (wrong != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [stop, wrong_too] = std::from_chars(dash + 1, end, last);
  constexpr uint32_t kFewest = 2;  // workers under MPS have the first
  if (wrong_too != std::errc() || stop != end || first == 0 || last == UINT32_MAX || last < first + kFewest - 1)
    return std::nullopt;
  return UidRange{first, last - first + 1};
}

void read_worker_uids(TomlTable& reader, Config& config) {
  std::string text;
  reader.read("worker_uids", text);
  if (text.empty()) return;
  const auto uids = parse_uids(text);
  if (!uids) return reader.wrong("worker_uids", stringf("'%s' is no range like 200000-200511", text.c_str()));
  if (!config.worker_user.empty()) reader.wrong("worker_uids", "worker_user says already as whom workers run");
  config.worker_uids = *uids;
}

void read_managed_memory(TomlTable& reader, ManagedMemory& managed) {
  static constexpr std::pair<std::string_view, ManagedMemory> kManagedPlaces[] = {
      {"auto", ManagedMemory::kAuto}, {"host", ManagedMemory::kHost}, {"device", ManagedMemory::kDevice}};
  std::string place = "auto";
  reader.read("managed_memory", place);
  for (const auto& [name, value] : kManagedPlaces) {
    if (place != name) continue;
    managed = value;
    return;
  }
  managed = ManagedMemory::kAuto;
  reader.wrong("managed_memory", stringf("'%s' is none of auto, host and device", place.c_str()));
}

Status read_daemon(const toml::table& table, const std::string& file, Config& config) {
  TomlTable reader(table, file, "daemon");
  reader.read("policy", config.policy);
  reader.read("age_limit", config.age_limit);
  reader.read("eager_launch", config.eager_launch);
  reader.read("log_level", config.log_level);
  reader.read("log_file", config.log_file);
  reader.read("input_log", config.input_log);
  reader.read("input_log_limit", config.input_log_limit);
  reader.read("history", config.history);
  reader.read("worker_user", config.worker_user);
  read_worker_uids(reader, config);
  reader.read("gpu_locks", config.gpu_locks);
  std::string gpus = "auto";
  reader.read("gpus", gpus);
  if (gpus != "auto" && gpus != "off") reader.wrong("gpus", stringf("'%s' is neither auto nor off", gpus.c_str()));
  config.use_gpus = gpus == "auto";
  reader.read("warm_workers", config.warm_workers, 0, 64);
  reader.read("kept_workers", config.kept_workers, 0, 64);
  read_managed_memory(reader, config.managed_memory);
  reader.read("trace_events", config.trace_events, 16, 1u << 24);
  reader.read("worker_start_timeout", config.worker_start_timeout);
  reader.read("worker_exit_grace", config.worker_exit_grace);
  reader.read("reconnect_grace", config.reconnect_grace);
  reader.read("worker_reconnect_for", config.worker_reconnect_for);
  read_ring_sizes(reader, config.ring);
  if (const auto placement = policy::make_placement(config.policy); !placement)
    reader.wrong("policy", placement.error().text);
  return reader.finish();
}

Status read_limits(const toml::table& table, const std::string& file, Limits& limits) {
  TomlTable reader(table, file, "limits");
  reader.read("sessions", limits.sessions, 1);
  reader.read("sessions_per_user", limits.sessions_per_user, 1);
  reader.read("connections_per_user", limits.connections_per_user, 1);
  reader.read("jobs_per_user", limits.jobs_per_user, 1);
  reader.read("weight_of_job", limits.weight_of_job);
  reader.read("share_of_job", limits.share_of_job);
  reader.read("share_per_user", limits.share_per_user);
  reader.read("user_facing", limits.user_facing);
  if (limits.weight_of_job < 1) reader.wrong("weight_of_job", "at least 1 is wanted, which is what jobs have");
  if (limits.share_of_job > 1) reader.wrong("share_of_job", "a part of a device is wanted, at most 1");
  reader.read("device_memory_per_user", limits.device_memory_per_user);
  reader.read("segments_per_session", limits.segments_per_session, 1);
  reader.read("modules_per_session", limits.modules_per_session, 1);
  reader.read("module", limits.module);
  reader.read("modules_of_session", limits.modules_of_session);
  reader.read("host_of_session", limits.host_of_session);
  reader.read("host_total", limits.host_total);
  return reader.finish();
}

Status read_dispatch(const toml::table& table, const std::string& file, DispatchConfig& dispatch) {
  TomlTable reader(table, file, "dispatch");
  reader.read("policy", dispatch.policy);
  reader.read("window", dispatch.window);
  reader.read("return_limit", dispatch.return_limit);
  reader.read("batch_sms", dispatch.batch_sms, 1, 100);
  const auto entry = policy::find_dispatch(dispatch.policy);
  if (!entry) reader.wrong("policy", entry.error().text);
  dispatch.bounds_batch = entry && (*entry)->bounds_batch;
  if (dispatch.return_limit == Duration::zero()) reader.wrong("return_limit", "more than 0 is wanted");
  return reader.finish();
}

Status read_durability(const toml::table& table, const std::string& file, DurabilityConfig& durability) {
  using Level = DurabilityConfig::Level;
  constexpr std::pair<std::string_view, Level> kLevels[] = {
      {"off", Level::kOff}, {"long", Level::kLong}, {"auto", Level::kAuto}, {"full", Level::kFull}};
  TomlTable reader(table, file, "durability");
  std::string level = "off";
  reader.read("level", level);
  reader.read("undo", durability.undo);
  reader.read("long_from", durability.long_from);
  const auto found =
      std::find_if(std::begin(kLevels), std::end(kLevels), [&](const auto& each) { return each.first == level; });
  if (found == std::end(kLevels))
    reader.wrong("level", stringf("'%s' is none of off, long, auto, full", level.c_str()));
  else
    durability.level = found->second;
  if (durability.long_from == Duration::zero()) reader.wrong("long_from", "more than 0 is wanted");
  constexpr Bytes least{2 * kMiB}, most{64 * kGiB};
  if (durability.undo < least || durability.undo > most) reader.wrong("undo", "2M to 64G are wanted");
  return reader.finish();
}

Status read_swap(const toml::table& table, const std::string& file, SwapConfig& swap) {
  TomlTable reader(table, file, "swap");
  constexpr Bytes kUnsaid{UINT64_MAX};
  Bytes host = kUnsaid, pinned = kUnsaid;
  reader.read("host", host);
  reader.read("pinned", pinned);
  if (host != kUnsaid) swap.host = host;
  if (pinned != kUnsaid) swap.pinned = pinned;
  reader.read("idle", swap.idle);
  return reader.finish();
}

Status read_window(const toml::table& table, const std::string& file, Config& config) {
  TomlTable reader(table, file, "window");
  protocol::Window window;
  Bytes device, host;
  reader.read_address("base", window.base);
  reader.read("device", device);
  reader.read("host", host);
  window.device_bytes = device.value;
  window.host_bytes = host.value;
  constexpr uint64_t kEnd = 1ull << 47;  // of a process's addresses
  if (window.base == 0 || window.base % kStep != 0) reader.wrong("base", "a multiple of 2 MiB is wanted");
  if (device.value == 0 || device.value % kStep != 0) reader.wrong("device", "a multiple of 2 MiB is wanted");
  if (host.value % kStep != 0) reader.wrong("host", "a multiple of 2 MiB is wanted");
  if (window.base >= kEnd || device.value >= kEnd || host.value >= kEnd ||
      window.base + device.value + host.value > kEnd)
    reader.wrong("base", "the window ends behind a process's addresses, which have 47 bits");
  if (config.windows.size() == protocol::kMaxWindows)
    reader.wrong("base", stringf("at most %u windows", protocol::kMaxWindows));
  HEDDLE_TRY(reader.finish());
  config.windows.push_back(window);
  return {};
}

Status read_device(const toml::table& table, const std::string& file, Config& config) {
  auto devices = parse_devices(table, file);
  if (!devices) return tl::unexpected(std::move(devices).error());
  if (config.devices.size() + devices->size() > kLargestPool)
    return fail(ErrorCode::kLimitExceeded, "%s:%u: device.count: a pool has at most %zu devices", file.c_str(),
                table.source().begin.line, kLargestPool);
  config.devices.insert(config.devices.end(), devices->begin(), devices->end());
  return {};
}

Status read_gpu(const toml::table& table, const std::string& file, Config& config) {
  auto gpu = parse_gpu(table, file);
  if (!gpu) return tl::unexpected(std::move(gpu).error());
  config.gpus.push_back(std::move(*gpu));
  return {};
}

using ReadTable = Status (*)(const toml::table&, const std::string&, Config&);

// `[name]` once, or `[[name]]` any number of times.
Status read_section(const toml::node& node, const std::string& name, bool many, ReadTable read, const std::string& file,
                    Config& config) {
  if (!many && node.is_table()) return read(*node.as_table(), file, config);
  if (many && node.is_array_of_tables()) {
    for (const toml::node& each : *node.as_array()) HEDDLE_TRY(read(*each.as_table(), file, config));
    return {};
  }
  return fail(ErrorCode::kInvalidArgument, "%s:%u: write it as %s", file.c_str(), node.source().begin.line,
              many ? ("[[" + name + "]]").c_str() : ("[" + name + "]").c_str());
}

Status read_root(const toml::table& root, const std::string& file, Config& config) {
  const auto limits = [](const toml::table& table, const std::string& name, Config& to) {
    return read_limits(table, name, to.limits);
  };
  const auto dispatch = [](const toml::table& table, const std::string& name, Config& to) {
    return read_dispatch(table, name, to.dispatch);
  };
  const auto durability = [](const toml::table& table, const std::string& name, Config& to) {
    return read_durability(table, name, to.durability);
  };
  const auto swap = [](const toml::table& table, const std::string& name, Config& to) {
    return read_swap(table, name, to.swap);
  };
  for (const auto& [key, node] : root) {
    const std::string name(key.str());
    if (name == "daemon") {
      HEDDLE_TRY(read_section(node, name, false, read_daemon, file, config));
    } else if (name == "limits") {
      HEDDLE_TRY(read_section(node, name, false, limits, file, config));
    } else if (name == "dispatch") {
      HEDDLE_TRY(read_section(node, name, false, dispatch, file, config));
    } else if (name == "durability") {
      HEDDLE_TRY(read_section(node, name, false, durability, file, config));
    } else if (name == "swap") {
      HEDDLE_TRY(read_section(node, name, false, swap, file, config));
    } else if (name == "window") {
      HEDDLE_TRY(read_section(node, name, true, read_window, file, config));
    } else if (name == "device") {
      HEDDLE_TRY(read_section(node, name, true, read_device, file, config));
    } else if (name == "gpu") {
      HEDDLE_TRY(read_section(node, name, true, read_gpu, file, config));
    } else {
      return fail(ErrorCode::kInvalidArgument, "%s:%u: no such key: %s", file.c_str(), node.source().begin.line,
                  name.c_str());
    }
  }
  return {};
}

// What keys of different tables say together.
Status check_together(const Config& config, const std::string& file) {
  const auto entry = policy::find_dispatch(config.dispatch.policy);
  if (config.input_log.empty() || !entry || !(*entry)->deadline) return {};
  return fail(ErrorCode::kInvalidArgument,
              "%s: daemon.input_log: an input log has no lines for what deadline policies are told: leave it out, or "
              "take another dispatch.policy than %s",
              file.c_str(), config.dispatch.policy.c_str());
}

}  // namespace

Config default_config() {
  Config config;
  complete(config);
  return config;
}

Result<Config> parse_config(std::string_view text, const std::string& name) {
  Config config;
  try {
    const toml::table root = toml::parse(text, name);
    HEDDLE_TRY(read_root(root, name, config));
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kInvalidArgument, "%s:%u: %s", name.c_str(), error.source().begin.line,
                std::string(error.description()).c_str());
  }
  HEDDLE_TRY(check_together(config, name));
  complete(config);
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail_errno(-1, "cannot read configuration '%s'", path.c_str());
  if (std::filesystem::is_directory(path))
    return fail(ErrorCode::kInvalidArgument, "configuration '%s' is a directory: name a file", path.c_str());
  std::ostringstream text;
  text << file.rdbuf();
  return parse_config(text.str(), path);
}

}  // namespace heddle::daemon
