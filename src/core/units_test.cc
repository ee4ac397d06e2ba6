#include "core/units.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(ParseBytes, TakesBinaryUnits) {
  EXPECT_EQ(parse_bytes("512")->value, 512u);
  EXPECT_EQ(parse_bytes("64K")->value, 64 * kKiB);
  EXPECT_EQ(parse_bytes("1.5G")->value, 3 * kGiB / 2);
  EXPECT_EQ(parse_bytes("16GiB")->value, 16 * kGiB);
}

TEST(ParseBytes, RefusesWithTheTextInTheMessage) {
  for (const char* text : {"", "x", "-1", "1.5Q", "1 G", "nan", "inf", "1e30"}) {
    auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text.find(text), std::string::npos) << parsed.error().text;
  }
}

TEST(ToString, KeepsFourDigits) {
  EXPECT_EQ(to_string(Bytes{3 * kGiB / 2}), "1.5 GiB");
  EXPECT_EQ(to_string(Bytes{12}), "12 B");
  EXPECT_EQ(to_string(Duration{1'500'000}), "1.5 ms");
}

TEST(ParseDuration, TakesUnits) {
  EXPECT_EQ(parse_duration("200ms")->count(), 200'000'000);
  EXPECT_EQ(parse_duration("1.5s")->count(), 1'500'000'000);
  EXPECT_FALSE(parse_duration("200"));
  EXPECT_FALSE(parse_duration("ms"));
}

}  // namespace
}  // namespace heddle
