#include "policy/dispatch/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

using testing::HasSubstr;

TEST(MakeDispatch, MakesEachThatTheTableNames) {
  for (const DispatchEntry& entry : dispatch_table()) {
    const std::string text = std::string(entry.name) + (entry.argument.empty() ? "" : ":3");
    const auto made = make_dispatch(text);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_FALSE(entry.description.empty());
    EXPECT_FALSE((*made)->next(TimePoint{})) << text << " wants to be called with nobody there";
  }
}

TEST(MakeDispatch, FirstIsOpenAndTheOnlyOneWithoutLeases) {
  for (const DispatchEntry& entry : dispatch_table()) {
    const bool first = &entry == dispatch_table().data();
    EXPECT_EQ(entry.name == "open", first);
    EXPECT_EQ((*entry.make("3"))->exclusive(), !first) << entry.name;
  }
}

TEST(MakeDispatch, UnknownNameListsWhatIsKnown) {
  for (const char* name : {"best", "", "open:1", "Open"}) {
    const auto made = make_dispatch(name);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(made.error().text, HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(made.error().text, HasSubstr("known policies: open, fs, tfs, las, las:<n>, token"));
  }
}

TEST(MakeDispatch, LasTakesHowManyAtATime) {
  for (const char* name : {"las", "las:1", "las:48"}) EXPECT_TRUE(make_dispatch(name)) << name;
  for (const char* name : {"las:", "las:0", "las:49", "las:-1", "las:2x", "las: 2", "las:99999999999"}) {
    const auto made = make_dispatch(name);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(made.error().text, HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(made.error().text, HasSubstr("a number from 1 to 48"));
    EXPECT_FALSE(find_dispatch(name)) << name;
  }
}

}  // namespace
}  // namespace heddle::policy
