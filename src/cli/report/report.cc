#include "cli/report/report.h"

#include <algorithm>
#include <fstream>

#include "cli/report/charts.h"

namespace heddle::cli {
namespace {

constexpr size_t kMostListed = 500;

constexpr char kStyle[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--faint:#d8dee4;--soft:#57606a}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--faint:#30363d;--soft:#8d96a0}}\n"
    "body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1120px;"
    "margin:24px auto;padding:0 16px}\n"
    "h1{font-size:22px}h2{font-size:18px;margin-top:40px;border-top:1px solid var(--faint);padding-top:16px}"
    "h3{font-size:14px;margin:20px 0 6px}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}\n"
    "td,th{padding:3px 10px 3px 0;border-bottom:1px solid var(--faint);text-align:right;white-space:nowrap}\n"
    "td:first-child,th:first-child{text-align:left}th{color:var(--soft);font-weight:600}\n"
    "svg{width:100%;height:auto;display:block}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}\n"
    ".grid{stroke:var(--faint);stroke-width:1}.note{color:var(--soft);margin:4px 0}\n"
    ".key{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:6px;vertical-align:-1px}\n";

std::string cell(const char* kind, const std::string& text) {
  return std::string("<") + kind + ">" + escaped(text) + "</" + kind + ">";
}

std::string row(const char* kind, const std::vector<std::string>& cells) {
  std::string text = "<tr>";
  for (const std::string& each : cells) text += cell(kind, each);
  return text + "</tr>\n";
}

std::string in_seconds(const std::optional<double>& value) {
  return value ? stringf("%.3f s", *value) : "-";
}

std::string table_of_runs(const std::vector<ReportRun>& runs) {
  if (runs.empty()) return "";
  std::vector<std::string> names;
  for (const auto& [name, value] : runs.front().figures) names.push_back(name);
  std::string text = "<div class=\"wide\"><table>\n" + row("th", names);
  for (const ReportRun& run : runs) {
    std::vector<std::string> values;
    for (const auto& [name, value] : run.figures) values.push_back(value);
    text += row("td", values);
  }
  return text + "</table></div>\n";
}

// What the jobs of one group had.
struct Had {
  uint64_t jobs = 0, runs = 0, with_turnaround = 0;
  double busy = 0, waited = 0, longest_wait = 0, turnaround = 0;
};

std::vector<Had> had_by_group(const ReportRun& run) {
  std::vector<Had> all(run.groups.size());
  for (const ReportJob& job : run.jobs) {
    Had& had = all[job.group];
    ++had.jobs;
    had.runs += job.runs;
    had.busy += job.busy;
    had.waited += job.waited;
    had.longest_wait = std::max(had.longest_wait, job.waited);
    if (!job.turnaround) continue;
    ++had.with_turnaround;
    had.turnaround += *job.turnaround;
  }
  return all;
}

// The colours' key, too. By weight: what the jobs would have if all of them wanted all of the time.
std::string table_of_groups(const ReportRun& run) {
  const auto all = had_by_group(run);
  double busy = 0, weights = 0;
  for (size_t group = 0; group < all.size(); ++group) {
    busy += all[group].busy;
    weights += run.groups[group].weight * double(all[group].jobs);
  }
  const auto percent = [](double part, double whole) {
    return whole > 0 ? stringf("%.1f %%", 100 * part / whole) : std::string("-");
  };
  std::string text =
      "<div class=\"wide\"><table>\n" + row("th", {"Jobs", "Number", "Runs done", "Weight", "By weight", "Had",
                                                   "Kernels", "Mean wait", "Longest wait", "Mean turnaround"});
  for (size_t group = 0; group < all.size(); ++group) {
    const Had& had = all[group];
    const double jobs = double(std::max<uint64_t>(1, had.jobs)), weight = run.groups[group].weight;
    text += "<tr><td><span class=\"key\" style=\"background:" + colour_of(group) + "\"></span>" +
            escaped(run.groups[group].name) + "</td>";
    for (const std::string& value :
         {std::to_string(had.jobs), std::to_string(had.runs), stringf("%g", weight),
          percent(weight * double(had.jobs), weights), percent(had.busy, busy), in_seconds(had.busy),
          in_seconds(had.waited / jobs), in_seconds(had.longest_wait),
          in_seconds(had.with_turnaround > 0 ? std::optional(had.turnaround / double(had.with_turnaround))
                                             : std::nullopt)})
      text += cell("td", value);
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string table_of_jobs(const ReportRun& run) {
  std::string text = stringf("<details><summary>%zu jobs</summary><div class=\"wide\"><table>\n", run.jobs.size()) +
                     row("th", {"Job", "Arrived", "Started", "Ended", "Waited", "Kernels", "Runs done", ""});
  for (size_t i = 0; i < std::min(run.jobs.size(), kMostListed); ++i) {
    const ReportJob& job = run.jobs[i];
    text += row("td", {job.name, in_seconds(job.arrived), in_seconds(job.started), in_seconds(job.ended),
                       in_seconds(job.waited), in_seconds(job.busy), std::to_string(job.runs), job.note});
  }
  text += "</table></div>\n";
  if (run.jobs.size() > kMostListed) text += stringf("<p class=\"note\">The first %zu.</p>\n", kMostListed);
  return text + "</details>\n";
}

std::string section_of(const ReportRun& run) {
  return "<h2>" + escaped(run.name) + "</h2>\n<h3>Tasks on each device</h3>\n" + timeline_chart(run) +
         "<h3>What kernels had of all devices' time</h3>\n" + shares_chart(run) +
         "<p class=\"note\">Above 100 % where kernels of several jobs are on a device at a time.</p>\n" +
         "<h3>Waits for memory and a device, by when they began</h3>\n" + waits_chart(run) + "<h3>Who had what</h3>\n" +
         table_of_groups(run) +
         "<p class=\"note\">By weight: if all of them had wanted a device all of the time.</p>\n" + table_of_jobs(run);
}

}  // namespace

std::string report_page(const std::string& title, const std::vector<ReportRun>& runs) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(title) +
                     "</title>\n<style>\n" + kStyle + "</style></head>\n<body>\n<h1>" + escaped(title) + "</h1>\n" +
                     table_of_runs(runs);
  for (const ReportRun& run : runs) page += section_of(run);
  return page + "</body></html>\n";
}

Status write_report(const std::string& path, const std::string& title, const std::vector<ReportRun>& runs) {
  std::ofstream file(path);
  file << report_page(title, runs);
  file.close();
  if (!file) return fail_errno(-1, "cannot write the report '%s'", path.c_str());
  return {};
}

}  // namespace heddle::cli
