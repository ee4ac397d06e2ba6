#include "policy/text.h"

#include <gtest/gtest.h>

namespace heddle::policy {
namespace {

TEST(Text, WritesAmountsForPeople) {
  EXPECT_EQ(text(Bytes{0}), "0 B");
  EXPECT_EQ(text(Bytes{1023}), "1023 B");
  EXPECT_EQ(text(Bytes{kGiB}), "1 GiB");
  EXPECT_EQ(text(Bytes{kGiB * 5 / 2}), "2.5 GiB");
  EXPECT_EQ(text(Bytes{kMiB + kMiB / 20}), "1.04 MiB");  // never more than there is
  EXPECT_EQ(text(Bytes{UINT64_MAX}), "16777215.99 TiB");
  EXPECT_EQ(text("task ", TaskId{7}, ", ", Duration(std::chrono::milliseconds(2340))), "task 7, 2.34 s");
}

}  // namespace
}  // namespace heddle::policy
