#include "cli/batch/jobs_file.h"

#include <toml++/toml.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "core/device_share.h"

namespace heddle::cli {
namespace {

constexpr int64_t kMostJobs = 100'000;

// Errors of one file, each with the line it is about.
class Complaints {
 public:
  explicit Complaints(const std::string& path) : path_(path) {}
  template <class Node>
  tl::unexpected<Error> about(const Node& node, const std::string& text) const {
    return fail(ErrorCode::kInvalidArgument, "%s:%u: %s", path_.c_str(), node.source().begin.line, text.c_str());
  }

 private:
  const std::string& path_;
};

Status check_keys(const toml::table& table, const std::set<std::string_view>& known, const Complaints& complaints) {
  for (const auto& [key, value] : table) {
    if (known.contains(key.str())) continue;
    std::string list;
    for (std::string_view name : known) list += (list.empty() ? "" : ", ") + std::string(name);
    return complaints.about(value, "unknown key '" + std::string(key.str()) + "'; known are " + list);
  }
  return {};
}

// `command` as an array of strings, or as one string split at spaces.
Result<std::vector<std::string>> read_command(const toml::table& table, const Complaints& complaints) {
  const toml::node* node = table.get("command");
  if (!node) return complaints.about(table, "a job needs a command, like command = [\"./vecadd\", \"1000\"]");
  std::vector<std::string> command;
  if (const toml::array* words = node->as_array()) {
    for (const toml::node& word : *words) {
      const auto text = word.value_exact<std::string>();
      if (!text) return complaints.about(word, "every word of 'command' must be a string");
      command.push_back(*text);
    }
  } else if (const auto line = node->value_exact<std::string>()) {
    std::istringstream split(*line);
    for (std::string word; split >> word;) command.push_back(word);
  }
  if (command.empty()) return complaints.about(*node, "'command' must be a string or an array of strings, not empty");
  return command;
}

// Reads an optional value of type T under `key`; an error where it has another type.
template <class T>
Status read_optional(const toml::table& table, const char* key, T& value, const Complaints& complaints) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  const auto exact = node->value_exact<T>();
  if (!exact) return complaints.about(*node, std::string("'") + key + "' has the wrong type");
  value = *exact;
  return {};
}

// A number with or without a point.
Status read_number(const toml::table& table, const char* key, double& value, const Complaints& complaints) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  if (!node->is_number()) return complaints.about(*node, std::string("'") + key + "' must be a number");
  value = *node->value<double>();
  return {};
}

Status read_class(const toml::table& table, DeviceShare& share, const Complaints& complaints) {
  std::string slo;
  HEDDLE_TRY(read_optional(table, "class", share.job_class, complaints));
  HEDDLE_TRY(read_optional(table, "slo", slo, complaints));
  if (table.contains("slo")) {
    const auto duration = parse_duration(slo);
    if (!duration) return complaints.about(*table.get("slo"), duration.error().text);
    share.slo = *duration;
  }
  const auto wrong = wrong_class(share.job_class, share.slo);
  return wrong ? complaints.about(*table.get(wrong->key), wrong->text) : Status();
}

Status read_share(const toml::table& table, DeviceShare& share, const Complaints& complaints) {
  HEDDLE_TRY(read_number(table, "weight", share.weight, complaints));
  HEDDLE_TRY(read_number(table, "share", share.share, complaints));
  HEDDLE_TRY(read_number(table, "limit", share.limit, complaints));
  if (const auto wrong = wrong_share(share.weight, share.share, share.limit)) {
    const toml::node* node = table.get(wrong->key);
    return complaints.about(node ? *node : table, wrong->text);
  }
  HEDDLE_TRY(read_optional(table, "app", share.app, complaints));
  return read_class(table, share, complaints);
}

// Relative programs are relative to the file that names them, not to wherever heddle was started.
void resolve_program(std::string& program, const std::string& file) {
  if (program.find('/') == std::string::npos || program.front() == '/') return;
  program = std::filesystem::absolute(std::filesystem::path(file).parent_path() / program).lexically_normal().string();
}

Status read_job(const toml::table& table, const std::string& path, std::vector<BatchJob>& jobs) {
  const Complaints complaints(path);
  HEDDLE_TRY(check_keys(table,
                        {"name", "command", "kind", "mem", "count", "weight", "share", "limit", "app", "class", "slo"},
                        complaints));
  BatchJob job;
  auto command = read_command(table, complaints);
  if (!command) return tl::unexpected(std::move(command).error());
  job.command = std::move(*command);
  resolve_program(job.command[0], path);
  std::string memory;
  int64_t count = 1;
  HEDDLE_TRY(read_optional(table, "name", job.name, complaints));
  HEDDLE_TRY(read_optional(table, "kind", job.kind, complaints));
  HEDDLE_TRY(read_optional(table, "mem", memory, complaints));
  HEDDLE_TRY(read_optional(table, "count", count, complaints));
  HEDDLE_TRY(read_share(table, job.share, complaints));
  if (count < 1 || count > kMostJobs)
    return complaints.about(*table.get("count"), stringf("'count' is %ld, it must be 1 to %ld",
                                                         static_cast<long>(count), static_cast<long>(kMostJobs)));
  if (!memory.empty()) {
    auto bytes = parse_bytes(memory);
    if (!bytes) return complaints.about(*table.get("mem"), bytes.error().text);
    job.memory = *bytes;
  }
  const std::string stem = job.name.empty() ? std::filesystem::path(job.command[0]).filename().string() : job.name;
  for (int64_t i = 0; i < count; ++i) {
    BatchJob copy = job;
    copy.name = job.name.empty() || count > 1 ? stem + "-" + std::to_string(jobs.size() + 1) : job.name;
    jobs.push_back(std::move(copy));
  }
  return {};
}

}  // namespace

Result<std::vector<BatchJob>> read_jobs_file(const std::string& path) {
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return fail(ErrorCode::kInvalidArgument, "%s:%u: %s", path.c_str(), error.source().begin.line,
                std::string(error.description()).c_str());
  }
  const Complaints complaints(path);
  HEDDLE_TRY(check_keys(file, {"job"}, complaints));
  const toml::array* entries = file["job"].as_array();
  if (!entries || entries->empty()) return fail(ErrorCode::kInvalidArgument, "%s: no [[job]] in it", path.c_str());
  std::vector<BatchJob> jobs;
  for (const toml::node& entry : *entries) {
    const toml::table* table = entry.as_table();
    if (!table) return complaints.about(entry, "'job' must be written [[job]]");
    HEDDLE_TRY(read_job(*table, path, jobs));
  }
  std::set<std::string> names;
  for (const BatchJob& job : jobs) {
    if (!names.insert(job.name).second)
      return fail(ErrorCode::kInvalidArgument, "%s: two jobs are called '%s'", path.c_str(), job.name.c_str());
  }
  return jobs;
}

}  // namespace heddle::cli
