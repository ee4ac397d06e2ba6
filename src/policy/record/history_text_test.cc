#include "policy/record/history_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

using testing::HasSubstr;

History three_apps() {
  History history;
  history.add("b", 1e9 / 3, 0.1, 0);
  history.add("a line\nof 'its' own %", 12'345'678'901'234.5, 1, 100);
  history.add("", 0, 0, 0);
  history.add("b", 1e9 / 7, 0.7, 1.0 / 3);
  return history;
}

std::string why_not_read(const std::string& text) {
  const auto read = read_history(text);
  EXPECT_FALSE(read) << text;
  return read ? "" : read.error().text;
}

TEST(HistoryText, ComesBackAsItWas) {
  const auto known = three_apps().known();
  const auto read = read_history(write_history(known));
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_EQ(read->size(), known.size());
  for (size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ((*read)[i].app, known[i].app);
    EXPECT_EQ((*read)[i].entry.jobs, known[i].entry.jobs);
    EXPECT_EQ((*read)[i].entry.busy, known[i].entry.busy);
    EXPECT_EQ((*read)[i].entry.utilization, known[i].entry.utilization);
    EXPECT_EQ((*read)[i].entry.by_host, known[i].entry.by_host);
  }
  EXPECT_EQ(read->back().app, "b");
}

TEST(HistoryText, OfNobodyIsAHistory) {
  const auto read = read_history(write_history({}));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->empty());
}

TEST(HistoryText, CutOffAnywhereIsRefused) {
  const std::string text = write_history(three_apps().known());
  for (size_t length = 0; length < text.size(); ++length) why_not_read(text.substr(0, length));
  why_not_read(text + "0 learned 'c 1 1 0.5 1\n");
}

TEST(HistoryText, WrongLinesAreNamed) {
  EXPECT_THAT(why_not_read("\x7f"
                           "ELF\n"),
              HasSubstr("line 1"));
  EXPECT_THAT(why_not_read("0 history 1\n0 end 0\n"), HasSubstr("line 1"));
  EXPECT_THAT(why_not_read("0 history 2\n0 end 1\n"), HasSubstr("line 2"));
  for (const char* fields : {"'a 1 nan 0.5 1", "'a 1 inf 0.5 1", "'a 1 -1 0.5 1", "'a 1 1 1.5 1", "'a 0 1 0.5 1",
                             "'a 1 1 nan 1", "'a 1 1", "'a 1 1 0.5", "'a 1 1 0.5 1 1", "a 1 1 0.5 1", "'a -1 1 0.5 1",
                             "'a%4 1 1 0.5 1", "'a 1 1 0.5 101", "'a 1 1 0.5 nan"})
    EXPECT_THAT(why_not_read(std::string("0 history 2\n0 learned ") + fields + "\n0 end 1\n"), HasSubstr("line 2"))
        << fields;
}

}  // namespace
}  // namespace heddle::policy
