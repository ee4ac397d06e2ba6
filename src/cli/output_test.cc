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

TEST(Fields, FallBackWhereMissing) {
  const Json object{{"a", 3}, {"b", "text"}, {"c", nullptr}};
  EXPECT_EQ(string_of(object, "a"), "3");
  EXPECT_EQ(string_of(object, "c", "-"), "-");
  EXPECT_EQ(number_of(object, "b", 7), 7);
}

}  // namespace
}  // namespace heddle::cli
