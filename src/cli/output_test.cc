#include "cli/output.h"

#include <gtest/gtest.h>

namespace heddle::cli {
namespace {

TEST(Table, ShowsWhatATerminalWouldObey) {
  Table table({"PROGRAM"});
  table.add({"a\x1b[2J\nb"});
  EXPECT_EQ(table.text(), "PROGRAM\na\\x1b[2J\\nb\n");
}

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({"NAME", "N"});
  table.add({"a", "5"});
  table.add({"longer", "1234"});
  EXPECT_EQ(table.text(), "NAME    N\na          5\nlonger  1234\n");
}

// ESC, DEL, the C1 control CSI, a letter that is not ASCII, and a byte that is no UTF-8.
TEST(JsonText, ATerminalShowsItAndDoesNotObey) {
  const Json json{{"name", "a\x1b[2J\x7f\xc2\x9b\xc3\xa9\xff"}};
  EXPECT_EQ(json_text(json), R"({"name":"a\u001b[2J\u007f\u009b\u00e9\ufffd"})");
  EXPECT_EQ(json_text(json, 2), "{\n  \"name\": \"a\\u001b[2J\\u007f\\u009b\\u00e9\\ufffd\"\n}");
  EXPECT_EQ(parse_json(json_text(json))->at("name"), "a\x1b[2J\x7f\xc2\x9b\xc3\xa9\xef\xbf\xbd");
}

TEST(JsonText, PrintsSo) {
  ::testing::internal::CaptureStdout();
  print_json({{"name", "\xc2\x9b"}});
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "{\n  \"name\": \"\\u009b\"\n}\n");
}

TEST(Fields, FallBackWhereMissing) {
  const Json object{{"a", 3}, {"b", "text"}, {"c", nullptr}};
  EXPECT_EQ(string_of(object, "a"), "3");
  EXPECT_EQ(string_of(object, "c", "-"), "-");
  EXPECT_EQ(number_of(object, "b", 7), 7);
}

}  // namespace
}  // namespace heddle::cli
