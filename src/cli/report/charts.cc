#include "cli/report/charts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "core/result.h"

namespace heddle::cli {
namespace {

constexpr double kLeft = 200, kWidth = 900, kRight = 16, kAxis = 34;
constexpr double kChart = 180;  // height of those without rows
constexpr size_t kMostBars = 4000, kMostDots = 4000, kMostDevices = 64, kBins = 150;

// The step of an axis: 1, 2 or 5 of some power of ten, for about eight of them.
double step_of(double whole) {
  const double rough = whole / 8, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= rough) return step * power;
  }
  return 10 * power;
}

class Chart {
 public:
  Chart(double length, double height) : length_(length > 0 ? length : 1), height_(height) {
    const double step = step_of(length_);
    for (int i = 0; i * step <= length_ * 1.0001; ++i) {
      line(x(i * step), 0, x(i * step), height_, "grid");
      label(x(i * step), height_ + 16, "middle", stringf("%g s", i * step));
    }
  }

  double x(double time) const { return kLeft + std::clamp(time / length_, 0.0, 1.0) * kWidth; }

  // `title` is shown where a pointer rests on it.
  void bar(double from, double to, double top, double height, const std::string& colour, const std::string& title) {
    const double width = std::max(1.0, x(to) - x(from) - 0.5);
    body_ +=
        stringf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s</title></rect>\n",
                x(from), top, width, height, colour.c_str(), escaped(title).c_str());
  }
  void dot(double time, double y, const std::string& colour, const std::string& title) {
    body_ += stringf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s</title></circle>\n", x(time), y,
                     colour.c_str(), escaped(title).c_str());
  }
  void area(const std::string& points, const std::string& colour, const std::string& title) {
    body_ += stringf("<polygon fill=\"%s\" points=\"", colour.c_str()) + points + "\"><title>" + escaped(title) +
             "</title></polygon>\n";
  }
  void line(double from_x, double from_y, double to_x, double to_y, const char* style) {
    body_ += stringf("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", style, from_x, from_y,
                     to_x, to_y);
  }
  void label(double at_x, double at_y, const char* anchor, const std::string& text) {
    body_ += stringf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", at_x, at_y, anchor,
                     escaped(text).c_str());
  }
  // A scale of values, from 0 at the bottom.
  void scale(double most, double unit, const char* name) {
    const double step = step_of(most);
    for (int i = 0; i * step <= most * 1.0001; ++i) {
      const double y = height_ * (1 - i * step / most);
      line(kLeft, y, kLeft + kWidth, y, "grid");
      label(kLeft - 8, y + 4, "end", stringf("%g %s", i * step * unit, name));
    }
  }

  std::string text() const {
    const double whole = kLeft + kWidth + kRight, high = height_ + kAxis;
    return stringf("<svg viewBox=\"0 -8 %.0f %.0f\" role=\"img\">\n", whole, high) + body_ + "</svg>\n";
  }

 private:
  double length_, height_;
  std::string body_;
};

std::string part_shown(size_t shown, size_t all, const char* what, const char* which) {
  if (shown >= all) return "";
  return stringf("<p class=\"note\">%zu of %zu %s, %s.</p>\n", shown, all, what, which);
}

std::string title_of(const ReportRun& run, const ReportStay& stay) {
  std::string title = stringf("%s\n%.3f to %.3f s, after waiting for %.3f s", run.jobs[stay.job].name.c_str(),
                              stay.begin, stay.end, stay.waited);
  return stay.why.empty() ? title : title + "\n" + stay.why;
}

// The stays that are drawn, by their beginning: the longest.
std::vector<const ReportStay*> drawn(const ReportRun& run) {
  std::vector<const ReportStay*> stays;
  for (const ReportStay& stay : run.stays) {
    if (stay.device < std::min(run.devices.size(), kMostDevices)) stays.push_back(&stay);
  }
  const auto longer = [](const ReportStay* a, const ReportStay* b) { return a->end - a->begin > b->end - b->begin; };
  const auto earlier = [](const ReportStay* a, const ReportStay* b) { return a->begin < b->begin; };
  if (stays.size() > kMostBars) {
    std::stable_sort(stays.begin(), stays.end(), longer);
    stays.resize(kMostBars);
  }
  std::stable_sort(stays.begin(), stays.end(), earlier);
  return stays;
}

// The first row of its device that is free when the stay begins. Returns how many rows each device has.
std::vector<size_t> put_in_rows(const std::vector<const ReportStay*>& stays, size_t devices,
                                std::vector<size_t>& rows) {
  std::vector<std::vector<double>> free_from(devices);
  for (const ReportStay* stay : stays) {
    auto& ends = free_from[stay->device];
    auto row = std::find_if(ends.begin(), ends.end(), [&](double end) { return end <= stay->begin + 1e-9; });
    if (row == ends.end()) row = ends.insert(ends.end(), 0);
    *row = stay->end;
    rows.push_back(static_cast<size_t>(row - ends.begin()));
  }
  std::vector<size_t> counts;
  for (const auto& ends : free_from) counts.push_back(std::max<size_t>(1, ends.size()));
  return counts;
}

// By group and bin: kernels' time, as a part of all devices' time.
std::vector<std::vector<double>> binned(const ReportRun& run) {
  std::vector<std::vector<double>> bins(run.groups.size(), std::vector<double>(kBins));
  const double width = run.length / double(kBins), whole = width * double(std::max<size_t>(1, run.devices.size()));
  if (width <= 0) return bins;
  for (const ReportUse& use : run.uses) {
    auto& of_group = bins[run.jobs[use.job].group];
    const auto last = std::min(kBins - 1, static_cast<size_t>(std::max(0.0, use.end / width)));
    for (size_t bin = std::min(kBins - 1, static_cast<size_t>(std::max(0.0, use.begin / width))); bin <= last; ++bin) {
      const double begin = std::max(use.begin, double(bin) * width), end = std::min(use.end, double(bin + 1) * width);
      of_group[bin] += std::max(0.0, end - begin) * use.part / whole;
    }
  }
  return bins;
}

}  // namespace

std::string timeline_chart(const ReportRun& run) {
  const size_t devices = std::min(run.devices.size(), kMostDevices);
  const auto stays = drawn(run);
  std::vector<size_t> rows;
  const auto counts = put_in_rows(stays, devices, rows);
  const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const double row = std::clamp(1200 / double(std::max<size_t>(1, all)), 4.0, 16.0), gap = 6;
  std::vector<double> tops;
  double height = 0;
  for (const size_t count : counts) {
    tops.push_back(height);
    height += std::max(12.0, double(count) * row) + gap;
  }
  Chart chart(run.length, height);
  for (size_t device = 0; device < devices; ++device) {
    chart.label(kLeft - 8, tops[device] + 11, "end", run.devices[device].substr(0, 32));
    if (device > 0) chart.line(0, tops[device] - gap / 2, kLeft + kWidth, tops[device] - gap / 2, "grid");
  }
  for (size_t i = 0; i < stays.size(); ++i) {
    const ReportStay& stay = *stays[i];
    chart.bar(stay.begin, stay.end, tops[stay.device] + double(rows[i]) * row, row - 1,
              colour_of(run.jobs[stay.job].group), title_of(run, stay));
  }
  return chart.text() + part_shown(stays.size(), run.stays.size(), "tasks", "the longest on the devices shown") +
         part_shown(devices, run.devices.size(), "devices", "the first");
}

std::string shares_chart(const ReportRun& run) {
  const auto bins = binned(run);
  std::vector<double> below(kBins);
  double most = 1;
  for (size_t bin = 0; bin < kBins; ++bin) {
    double sum = 0;
    for (const auto& of_group : bins) sum += of_group[bin];
    most = std::max(most, sum);
  }
  Chart chart(run.length, kChart);
  chart.scale(most, 100, "%");
  const auto y = [&](double part) { return kChart * (1 - part / most); };
  for (size_t group = 0; group < bins.size(); ++group) {
    std::string upper, lower;
    for (size_t bin = 0; bin < kBins; ++bin) {
      const double from = chart.x(run.length * double(bin) / kBins), to = chart.x(run.length * double(bin + 1) / kBins);
      const double bottom = y(below[bin]), top = y(below[bin] += bins[group][bin]);
      upper += stringf("%.1f,%.1f %.1f,%.1f ", from, top, to, top);
      lower = stringf("%.1f,%.1f %.1f,%.1f ", to, bottom, from, bottom) + lower;
    }
    chart.area(upper + lower, colour_of(group), run.groups[group].name);
  }
  return chart.text();
}

std::string waits_chart(const ReportRun& run) {
  double longest = 0;
  for (const ReportStay& stay : run.stays) longest = std::max(longest, stay.waited);
  if (longest <= 0) {
    const bool any = std::any_of(run.jobs.begin(), run.jobs.end(), [](const ReportJob& job) { return job.waited > 0; });
    return std::string("<p class=\"note\">") + (any ? "Of those that got a device, nobody waited." : "Nobody waited.") +
           "</p>\n";
  }
  const size_t every = run.stays.size() / kMostDots + 1;
  Chart chart(run.length, kChart);
  const bool in_ms = longest < 1;
  chart.scale(longest, in_ms ? 1000 : 1, in_ms ? "ms" : "s");
  size_t shown = 0;
  for (size_t i = 0; i < run.stays.size(); i += every, ++shown) {
    const ReportStay& stay = run.stays[i];
    chart.dot(stay.begin - stay.waited, kChart * (1 - stay.waited / longest), colour_of(run.jobs[stay.job].group),
              title_of(run, stay));
  }
  return chart.text() + part_shown(shown, run.stays.size(), "tasks", "picked evenly");
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(letter) < ' ' && letter != '\n' ? '?' : letter;
    }
  }
  return safe;
}

std::string colour_of(size_t group) {
  static constexpr const char* kColours[] = {"#4c78a8", "#f58518", "#54a24b", "#e45756", "#b279a2",
                                             "#72b7b2", "#eeca3b", "#9d755d", "#ff9da6", "#8a8f98"};
  return kColours[group % std::size(kColours)];
}

}  // namespace heddle::cli
