#include "policy/dispatch/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

using testing::HasSubstr;

TEST(MakeDispatch, MakesEachThatTheTableNames) {
  for (const DispatchEntry& entry : dispatch_table()) {
    const auto made = make_dispatch(entry.name);
    ASSERT_TRUE(made) << entry.name;
    EXPECT_FALSE(entry.description.empty());
    EXPECT_FALSE((*made)->next(TimePoint{})) << entry.name << " wants to be called with nobody there";
  }
}

TEST(MakeDispatch, FirstIsOpenAndTheOnlyOneWithoutLeases) {
  for (const DispatchEntry& entry : dispatch_table()) {
    const bool first = &entry == dispatch_table().data();
    EXPECT_EQ(entry.name == "open", first);
    EXPECT_EQ(entry.make()->exclusive(), !first) << entry.name;
  }
}

TEST(MakeDispatch, UnknownNameListsWhatIsKnown) {
  for (const char* name : {"best", "", "open:1", "Open"}) {
    const auto made = make_dispatch(name);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(made.error().text, HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(made.error().text, HasSubstr("known policies: open"));
  }
}

}  // namespace
}  // namespace heddle::policy
