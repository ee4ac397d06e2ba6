#include "cli/batch/concurrency.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

TEST(Concurrency, JobsGoOnAndNoneIsStartedWhileHeddledCannotBeReached) {
  int asked = 0;
  Concurrency concurrency(policy::AdmissionLimits{}, [&]() -> Result<DaemonLink> {
    ++asked;
    return fail(ErrorCode::kNotFound, "nobody listens");
  });
  const auto alone = concurrency.admits();
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().text, "nobody listens");
  concurrency.started(1, ::getpid());
  const auto beside = concurrency.admits();
  ASSERT_TRUE(beside) << beside.error().text;
  EXPECT_FALSE(*beside);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(concurrency.pause(std::chrono::seconds(7)), std::chrono::seconds(7));
  concurrency.ended(1, {});
  EXPECT_FALSE(concurrency.admits());
}

}  // namespace
}  // namespace heddle::cli
