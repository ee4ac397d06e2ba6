#include "policy/placement/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

using testing::HasSubstr;

TEST(MakePlacement, MakesEachThatTheTableNames) {
  for (const PlacementEntry& entry : placement_table()) {
    const std::string text = std::string(entry.name) + (entry.argument.empty() ? "" : ":3");
    EXPECT_TRUE(make_placement(text)) << text;
    EXPECT_FALSE(entry.description.empty());
  }
}

TEST(MakePlacement, UnknownNameListsWhatIsKnown) {
  const auto made = make_placement("best");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(made.error().text, HasSubstr("'best'"));
  EXPECT_THAT(made.error().text,
              HasSubstr("sa, cg:<ratio>, schedgpu, mgb-sm, mgb-warps, grr, gmin, gwtmin, rtf, guf, guf:cpu"));
}

TEST(MakePlacement, WrongArgumentSaysHowToWriteIt) {
  for (const char* text : {"cg", "cg:", "cg:0", "cg:x", "cg:3x", "cg:-1", "cg:99999999999"}) {
    const auto made = make_placement(text);
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().text, HasSubstr("cg:3"));
    EXPECT_THAT(made.error().text, HasSubstr(std::string("'") + text + "'"));
  }
  EXPECT_FALSE(make_placement("sa:1"));
  EXPECT_FALSE(make_placement("sa:"));
  for (const char* text : {"guf:", "guf:wall", "guf:cpu:", "rtf:cpu"}) EXPECT_FALSE(make_placement(text)) << text;
  EXPECT_FALSE(make_placement(""));
}

}  // namespace
}  // namespace heddle::policy
