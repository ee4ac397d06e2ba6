#include "core/printable.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("vecadd --size 1m"), "vecadd --size 1m");
  EXPECT_EQ(printable("größe 計算 🧵"), "größe 計算 🧵");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\nheddled: all is well"), "a\\nheddled: all is well");
  EXPECT_EQ(printable("\x1b[2J\r\t\x7f"), "\\x1b[2J\\x0d\\t\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // CSI in one character of Latin 1
}

TEST(Printable, ShowsBytesThatAreNoText) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82");           // cut
}

}  // namespace
}  // namespace heddle
