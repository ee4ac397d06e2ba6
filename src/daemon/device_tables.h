#pragma once

#include <vector>

#include "core/toml_table.h"
#include "daemon/device_config.h"

namespace heddle::daemon {

// One [[device]] table: `count` devices alike, from a preset, with what the table overrides.
Result<std::vector<DeviceConfig>> parse_devices(const toml::table& table, const std::string& file);

// One [[gpu]] table.
Result<GpuConfig> parse_gpu(const toml::table& table, const std::string& file);

// Threads that one worker may use, where nothing is configured: the machine's, divided among `devices`.
uint32_t default_host_threads(size_t devices);

}  // namespace heddle::daemon
