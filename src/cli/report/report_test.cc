#include "cli/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report/charts.h"

namespace heddle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// What is opened is closed, in order; other than that a browser shows what it can.
void expect_nested(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const size_t end = page.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag[0] == '!' || tag.back() == '/' || tag.starts_with("meta")) continue;
    if (tag[0] != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    ASSERT_EQ(tag.substr(1), open.back()) << page.substr(at > 80 ? at - 80 : 0, 160);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

ReportRun two_jobs() {
  ReportRun run;
  run.name = "mgb-warps, fs";
  run.length = 10;
  run.figures = {{"POLICY", "mgb-warps"}, {"WAIT", "1.5 s"}};
  run.devices = {"0: P100", "1: P100"};
  run.groups = {{"large", 3}, {"small", 1}};
  run.jobs.resize(2);
  run.jobs[0] = {.name = "a", .group = 0, .started = 0.0, .ended = 8.0, .turnaround = 8.0, .busy = 6, .runs = 1};
  run.jobs[1] = {.name = "<b> & \"c\"", .group = 1, .started = 3.0, .waited = 3, .busy = 2};
  run.stays = {{0, 0, 0, 8, 0, "fewest warps"}, {1, 0, 3, 10, 3, ""}};
  run.uses = {{0, 0, 0, 8, 0.75}, {1, 0, 3, 10, 0.5}};
  return run;
}

TEST(Report, IsOnePageThatNeedsNothingElse) {
  const std::string page = report_page("jobs <1>", {two_jobs(), two_jobs()});
  expect_nested(page);
  for (const char* outside : {"http", "src=", "href", "url(", "<script", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("<title>jobs &lt;1&gt;</title>"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_EQ(count(page, "<svg"), 6u);
  EXPECT_EQ(count(page, "<h2>mgb-warps, fs</h2>"), 2u);
}

TEST(Report, TellsWhoHadWhat) {
  const std::string page = report_page("jobs", {two_jobs()});
  for (const char* told : {"<th>WAIT</th>", "<td>1.5 s</td>", "<td>75.0 %</td><td>75.0 %</td><td>6.000 s</td>",
                           "<td>25.0 %</td><td>25.0 %</td><td>2.000 s</td>", "&lt;b&gt; &amp; &quot;c&quot;",
                           "<td>3.000 s</td><td>-</td>"})
    EXPECT_THAT(page, HasSubstr(told));
}

TEST(Report, TimelineHasABarForEachStayInRows) {
  const std::string chart = timeline_chart(two_jobs());
  EXPECT_EQ(count(chart, "<rect"), 2u);
  EXPECT_THAT(chart, HasSubstr("fewest warps"));
  EXPECT_THAT(chart, HasSubstr("y=\"0.0\""));
  EXPECT_THAT(chart, HasSubstr("y=\"16.0\""));  // they overlap
  EXPECT_THAT(chart, HasSubstr(">1: P100<"));
}

TEST(Report, ManyTasksAreShownInPart) {
  ReportRun run = two_jobs();
  for (int i = 0; i < 20'000; ++i) run.stays.push_back({0, size_t(i % 2), i * 5e-4, i * 5e-4 + 1e-4, 1e-5, ""});
  const std::string page = report_page("jobs", {run});
  EXPECT_THAT(page, HasSubstr("4000 of 20002 tasks, the longest"));
  EXPECT_THAT(page, HasSubstr("of 20002 tasks, picked evenly"));
  EXPECT_LT(page.size(), 4u << 20);
  expect_nested(page);
}

// Nothing happened at all.
TEST(Report, EmptyRunIsAPageToo) {
  const std::string page = report_page("nothing", {ReportRun{}});
  expect_nested(page);
  EXPECT_THAT(page, HasSubstr("Nobody waited."));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  expect_nested(report_page("nothing", {}));
}

TEST(Report, FileThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(write_report("/nowhere/report.html", "x", {}).error().text, HasSubstr("/nowhere/report.html"));
}

}  // namespace
}  // namespace heddle::cli
