#include "simulator/scenario.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/device_share.h"
#include "core/toml_table.h"

namespace heddle::simulator {
namespace {

Result<std::vector<DeviceModel>> parse_devices(const toml::table& table, const std::string& file) {
  TomlTable keys(table, file, "device");
  std::string preset = "P100", model, sharing = "concurrent";
  uint32_t count = 1;
  keys.read("preset", preset);
  auto device = device_preset(preset);
  if (!device) {
    keys.wrong("preset", device.error().text);
    return tl::unexpected(keys.finish().error());
  }
  Bytes memory{device->memory_bytes}, context{device->context_bytes};
  keys.read("model", model);
  keys.read("count", count, 1, 4096);
  keys.read("memory", memory);
  keys.read("context", context);
  keys.read("slowdown", device->slowdown);
  keys.read("copy_slowdown", device->copy_slowdown);
  Bytes copies{device->copy_bytes_per_s};
  keys.read("copy_bandwidth", copies);
  keys.read("sharing", sharing);
  if (sharing != "concurrent" && sharing != "time-sliced")
    keys.wrong("sharing", "it is '" + sharing + "', but must be concurrent or time-sliced");
  if (device->slowdown <= 0) keys.wrong("slowdown", "simulated time needs one above 0");
  if (device->copy_slowdown <= 0) keys.wrong("copy_slowdown", "simulated time needs one above 0");
  if (copies.value == 0)
    keys.wrong("copy_bandwidth", "it is 0, but copies to and from the host need at least 1 byte a second");
  if (model.size() >= sizeof device->model) keys.wrong("model", "a name of at most 31 bytes is wanted");
  HEDDLE_TRY(keys.finish());
  if (!model.empty()) std::snprintf(device->model, sizeof device->model, "%s", model.c_str());
  device->memory_bytes = memory.value;
  device->context_bytes = context.value;
  device->copy_bytes_per_s = copies.value;
  device->sharing = sharing == "concurrent" ? Sharing::kConcurrent : Sharing::kTimeSliced;
  return std::vector<DeviceModel>(count, *device);
}

void check_class(TomlTable& keys, const std::string& kind, bool says_slo, JobShape& shape) {
  if (kind != "batch" && kind != "user-facing")
    keys.wrong("class", "it is '" + kind + "', but must be user-facing or batch");
  if (kind == "user-facing") shape.kind = policy::JobClass::kUserFacing;
  if (says_slo && kind == "batch")
    keys.wrong("slo",
               "batch jobs have none: only a job of class = \"user-facing\" has requests that are to end in time");
  if (shape.slo <= Duration::zero()) keys.wrong("slo", "how long a request may take is wanted: \"200ms\"");
}

// Calls `use` for each table of the array `key`.
template <class Use>
Status for_each_table(const toml::table& root, const char* key, const std::string& file, Use use) {
  const toml::node* node = root.get(key);
  if (!node) return {};
  const toml::array* tables = node->as_array();
  if (!tables)
    return fail(ErrorCode::kInvalidArgument, "%s: '%s' is no list of tables: [[%s]]", file.c_str(), key, key);
  for (const toml::node& each : *tables) {
    if (!each.is_table())
      return fail(ErrorCode::kInvalidArgument, "%s: '%s' is no list of tables: [[%s]]", file.c_str(), key, key);
    HEDDLE_TRY(use(*each.as_table()));
  }
  return {};
}

Result<Buffer> parse_buffer(const toml::table& table, const std::string& file, uint32_t bursts) {
  TomlTable keys(table, file, "job.buffer");
  Buffer buffer;
  keys.read("size", buffer.size);
  buffer.touched = buffer.size;
  keys.read("touched", buffer.touched);
  keys.read("from", buffer.from, 1, bursts);
  buffer.until = bursts;
  keys.read("until", buffer.until, buffer.from, bursts);
  if (buffer.size.value == 0) keys.wrong("size", "it is 0, but a buffer has at least 1 byte: \"512M\"");
  HEDDLE_TRY(keys.finish());
  return buffer;
}

// The buffers' sizes are the memory, whether that is said as well or not.
Status parse_buffers(const toml::table& table, const std::string& file, TomlTable& keys, JobShape& shape) {
  keys.leave("buffer");
  Bytes sum;
  HEDDLE_TRY(for_each_table(table, "buffer", file, [&](const toml::table& each) -> Status {
    auto buffer = parse_buffer(each, file, shape.bursts);
    if (!buffer) return tl::unexpected(std::move(buffer).error());
    if (buffer->size.value > UINT64_MAX - sum.value)
      return fail(ErrorCode::kInvalidArgument,
                  "%s:%u: job.buffer.size: it is %s, and all of the job's are 16 EiB or more", file.c_str(),
                  static_cast<unsigned>(each.source().begin.line), to_string(buffer->size).c_str());
    sum += buffer->size;
    shape.buffers.push_back(*buffer);
    return {};
  }));
  if (shape.buffers.empty()) return {};
  if (table.contains("memory") && shape.memory != sum)
    keys.wrong("memory", "it is " + std::to_string(shape.memory.value) + " bytes, but the job's buffers have " +
                             std::to_string(sum.value) + " together: leave it out");
  shape.memory = sum;
  return {};
}

Result<JobLine> parse_job(const toml::table& table, const std::string& file, size_t number) {
  TomlTable keys(table, file, "job");
  JobLine line;
  JobShape& shape = line.shape;
  uint32_t blocks = 1, threads = 256, registers = 32;
  Bytes shared;
  std::string arrivals = "every", kind = "batch";
  shape.name = "job " + std::to_string(number);
  keys.read("name", shape.name);
  keys.read("app", shape.app);
  keys.read("model", shape.model);
  keys.read("weight", shape.weight);
  keys.read("share", shape.request);
  keys.read("limit", shape.limit);
  keys.read("class", kind);
  const bool says_slo = table.contains("slo");
  keys.read("slo", shape.slo);
  keys.read("memory", shape.memory);
  keys.read("blocks", blocks, 1);
  keys.read("threads", threads, 1, 1024);
  keys.read("registers", registers, 0, 255);
  keys.read("shared", shared);
  keys.read("tasks", shape.tasks, 1);
  keys.read("bursts", shape.bursts, 1);
  keys.read("more", shape.more);
  const bool says_when = table.contains("more_at");
  keys.read("more_at", shape.more_at, 1, shape.bursts);
  if (says_when && shape.more.value == 0)
    keys.wrong("more_at", "it says when more memory is asked for, but not how much: set more, as \"4G\"");
  keys.read("before", shape.before);
  keys.read("behind", shape.behind);
  keys.read("host", shape.host);
  keys.read("copy", shape.copy);
  keys.read("busy", shape.busy);
  keys.read("busy_most", shape.busy_most);
  keys.read("kernel", shape.kernel);
  keys.read("count", line.count, 1, 10'000'000);
  keys.read("start", line.start);
  keys.read("every", line.every);
  keys.read("arrivals", arrivals);
  keys.read("repeats", line.repeats);
  if (arrivals != "every" && arrivals != "random")
    keys.wrong("arrivals", "it is '" + arrivals + "', but must be every or random");
  if (shape.busy <= Duration::zero()) keys.wrong("busy", "how long each burst's kernels take is wanted: \"20ms\"");
  if (shape.busy_most > Duration::zero() && shape.busy_most < shape.busy)
    keys.wrong("busy_most", "it is " + to_string(shape.busy_most) + ", but must not be below busy, " +
                                to_string(shape.busy) + ": each burst is drawn between the two");
  check_class(keys, kind, says_slo, shape);
  HEDDLE_TRY(parse_buffers(table, file, keys, shape));
  if (const auto wrong = wrong_share(shape.weight, shape.request, shape.limit)) keys.wrong(wrong->key, wrong->text);
  HEDDLE_TRY(keys.finish());
  shape.need = {blocks, threads, registers, shared};
  if (shape.app.empty()) shape.app = shape.name;
  line.random = arrivals == "random";
  return line;
}

void read_workers(const toml::table& root, TomlTable& keys, Workers& workers) {
  const toml::node* node = root.get("workers");
  if (!node || !node->is_string()) return keys.read("workers", workers.most);
  keys.leave("workers");
  const std::string text = node->value_or(std::string());
  if (text == "auto") {
    workers.automatic = true;
  } else {
    keys.wrong("workers", "it is '" + text + "', but must be \"auto\" or a number");
  }
}

Status read_swap(const toml::table& root, const std::string& file, Scenario& scenario) {
  const toml::node* node = root.get("swap");
  if (!node) return {};
  if (!node->is_table()) return fail(ErrorCode::kInvalidArgument, "%s: 'swap' is no table: [swap]", file.c_str());
  TomlTable keys(*node->as_table(), file, "swap");
  keys.read("host", scenario.swap.host);
  keys.read("idle", scenario.swap.idle);
  return keys.finish();
}

Status read_root(const toml::table& root, const std::string& file, Scenario& scenario) {
  TomlTable keys(root, file, "scenario");
  keys.leave("device");
  keys.leave("job");
  keys.leave("swap");
  HEDDLE_TRY(read_swap(root, file, scenario));
  keys.read("policy", scenario.policy);
  keys.read("dispatch", scenario.dispatch);
  keys.read("age_limit", scenario.age_limit);
  keys.read("window", scenario.window);
  keys.read("batch_sms", scenario.batch_sms, 1, 100);
  keys.read("terminate", scenario.revocation.terminate);
  keys.read("resume", scenario.revocation.resume);
  keys.read("epoch", scenario.revocation.epoch);
  read_workers(root, keys, scenario.workers);
  keys.read("processors", scenario.processors);
  keys.read("horizon", scenario.horizon);
  keys.read("seed", scenario.seed);
  keys.read("eager_launch", scenario.eager_launch);
  keys.read("eager_free", scenario.eager_free);
  if (scenario.eager_launch && scenario.swap.host.value == 0)
    keys.wrong("eager_launch",
               "it is true, but swap space, where tasks have memory on the host, has 0 bytes: set host in [swap]");
  return keys.finish();
}

Status check(const Scenario& scenario, const std::string& file) {
  if (scenario.devices.empty())
    return fail(ErrorCode::kInvalidArgument, "%s: no devices: add a [[device]] table", file.c_str());
  if (scenario.jobs.empty()) return fail(ErrorCode::kInvalidArgument, "%s: no jobs: add a [[job]] table", file.c_str());
  for (const JobLine& line : scenario.jobs) {
    if (line.repeats && scenario.horizon <= Duration::zero())
      return fail(ErrorCode::kInvalidArgument, "%s: '%s' repeats: the scenario needs a horizon", file.c_str(),
                  line.shape.name.c_str());
  }
  return {};
}

}  // namespace

Result<Scenario> parse_scenario(const std::string& text, const std::string& name) {
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kInvalidArgument, "%s:%u: %s", name.c_str(),
                static_cast<unsigned>(error.source().begin.line), std::string(error.description()).c_str());
  }
  Scenario scenario;
  HEDDLE_TRY(read_root(root, name, scenario));
  HEDDLE_TRY(for_each_table(root, "device", name, [&](const toml::table& table) -> Status {
    auto devices = parse_devices(table, name);
    if (!devices) return tl::unexpected(std::move(devices).error());
    scenario.devices.insert(scenario.devices.end(), devices->begin(), devices->end());
    return {};
  }));
  HEDDLE_TRY(for_each_table(root, "job", name, [&](const toml::table& table) -> Status {
    auto line = parse_job(table, name, scenario.jobs.size() + 1);
    if (!line) return tl::unexpected(std::move(line).error());
    scenario.jobs.push_back(std::move(*line));
    return {};
  }));
  HEDDLE_TRY(check(scenario, name));
  return scenario;
}

Result<Scenario> load_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail_errno(-1, "cannot read the scenario '%s'", path.c_str());
  if (std::filesystem::is_directory(path))
    return fail(ErrorCode::kInvalidArgument, "the scenario '%s' is a directory: name a file", path.c_str());
  std::ostringstream text;
  text << file.rdbuf();
  return parse_scenario(text.str(), path);
}

std::optional<Workers> parse_workers(const std::string& text) {
  if (text == "auto") return Workers{0, true};
  Workers workers;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), workers.most);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return workers;
}

std::string text_of(const Workers& workers) {
  if (workers.automatic) return "auto";
  return std::to_string(workers.most);
}

}  // namespace heddle::simulator
