// What `heddle top` shows, as text.

#include <algorithm>
#include <sstream>
#include <vector>

#include "cli/output.h"
#include "cli/top/top_view.h"

namespace heddle::cli {
namespace {

std::string percent(const Json& share) {
  return share.is_number() ? stringf("%.0f%%", 100 * share.get<double>()) : "-";
}

std::string joined(const Json& numbers) {
  std::string text;
  for (const Json& each : numbers) text += (text.empty() ? "" : ",") + json_text(each);
  return text.empty() ? "-" : text;
}

std::string seconds(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return "-";
  return stringf("%.1f s", found->get<double>() / 1e9);
}

// "3 h 5 min": the two largest units.
std::string uptime(uint64_t nanoseconds) {
  const uint64_t s = nanoseconds / 1'000'000'000, min = s / 60, h = min / 60, d = h / 24;
  const auto two = [](uint64_t a, const char* unit, uint64_t b, const char* smaller) {
    return stringf("%lu %s %lu %s", static_cast<unsigned long>(a), unit, static_cast<unsigned long>(b), smaller);
  };
  if (d > 0) return two(d, "d", h % 24, "h");
  if (h > 0) return two(h, "h", min % 60, "min");
  return min > 0 ? two(min, "min", s % 60, "s") : stringf("%lu s", static_cast<unsigned long>(s));
}

std::string summary(const Json& object) {
  const Json& heddled = object["heddled"];
  const auto waits = std::count_if(object["jobs"].begin(), object["jobs"].end(),
                                   [](const Json& job) { return string_of(job, "state") == "waiting"; });
  return stringf("heddled %s, up %s; policy %s, dispatch %s; jobs %zu, waiting %td\n",
                 string_of(heddled, "version").c_str(), uptime(count_of(heddled, "uptime_ns")).c_str(),
                 string_of(heddled, "policy").c_str(), string_of(heddled, "dispatch").c_str(), object["jobs"].size(),
                 waits);
}

// "job 3 held 0.1 s", and "another's" where it is of a user whose jobs are not shown.
std::string holders(const Json& leases) {
  std::string text;
  for (const Json& lease : leases) {
    text += text.empty() ? "" : ", ";
    text += lease.contains("job") ? "job " + string_of(lease, "job") : "another's";
    text += " " + string_of(lease, "state") + " " + seconds(lease, "for_ns");
  }
  return text.empty() ? "-" : text;
}

std::string lease_of(const Json& lease) {
  return lease.is_object() ? string_of(lease, "state") + " " + seconds(lease, "for_ns") : "-";
}

// What it asked for: "0.3 to 0.6".
std::string asked_of(const Json& job) {
  const double share = number_of(job, "share"), limit = number_of(job, "limit", 1);
  return share > 0 || limit < 1 ? stringf("%g to %g", share, limit) : "-";
}

std::string program_of(const Json& job) {
  const std::string name = string_of(job, "name");
  return name.substr(name.find_last_of('/') + 1);
}

std::string device_table(const Json& devices) {
  Table table({"DEVICE", "NAME", "BUSY", "USED", "FREE", "OF", "TASKS", "WARPS", "LEASE", "STATE"});
  for (const Json& device : devices) {
    table.add({string_of(device, "device"), string_of(device, "name"), percent(device["busy"]),
               bytes_of(device, "used"), bytes_of(device, "free"), bytes_of(device, "memory"),
               string_of(device, "tasks"), string_of(device, "warps") + "/" + string_of(device, "max_warps"),
               holders(device["leases"]), string_of(device, "state")});
  }
  return table.text();
}

std::string job_table(const Json& jobs) {
  Table table({"JOB", "USER", "PROGRAM", "STATE", "DEVICE", "WEIGHT", "ASKED", "GOT", "LEASE", "MEMORY", "WAITED",
               "FOR", "WHY"});
  for (const Json& job : jobs) {
    const Json& wait = job["wait"];
    const bool waits = wait.is_object();
    table.add({string_of(job, "job"), string_of(job, "user"), program_of(job), string_of(job, "state"),
               joined(job["devices"]), stringf("%g", number_of(job, "weight", 1)), asked_of(job), percent(job["busy"]),
               lease_of(job["lease"]), bytes_of(job, "memory"), waits ? seconds(wait, "for_ns") : "-",
               waits ? string_of(wait, "cause") : "-", waits ? string_of(wait, "why") : ""});
  }
  return table.empty() ? "nothing runs\n" : table.text();
}

// The line's first bytes, at most `most`; no character is cut apart.
std::string beginning(const std::string& line, size_t most) {
  if (line.size() <= most) return line;
  while (most > 0 && (static_cast<unsigned char>(line[most]) & 0xc0) == 0x80) --most;
  return line.substr(0, most);
}

}  // namespace

std::string top_text(const Json& object, size_t columns, size_t lines) {
  std::string text = summary(object) + "\n" + device_table(object["devices"]) + "\n" + job_table(object["jobs"]);
  if (const uint64_t hidden = count_of(object, "hidden_sessions"); hidden > 0)
    text += stringf("and %lu sessions of other users\n", static_cast<unsigned long>(hidden));
  std::istringstream stream(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(stream, line);) all.push_back(std::move(line));
  if (lines > 0 && all.size() > lines) {
    const std::string more = stringf("... %zu lines more", all.size() - lines + 1);
    all.resize(lines);
    all.back() = more;
  }
  std::string shown;
  for (const std::string& line : all) shown += (columns == 0 ? line : beginning(line, columns)) + "\n";
  return shown;
}

}  // namespace heddle::cli
