#include "cli/batch/concurrency.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace heddle::cli {
namespace {

TEST(Concurrency, FailsWhileHeddledCannotBeReached) {
  int asked = 0;
  Concurrency concurrency(policy::AdmissionLimits{}, [&]() -> Result<DaemonLink> {
    ++asked;
    return fail(ErrorCode::kNotFound, "nobody listens");
  });
  for (int tries = 1; tries <= 2; ++tries) {
    const auto admits = concurrency.admits();
    ASSERT_FALSE(admits);
    EXPECT_EQ(admits.error().text, "nobody listens");
    EXPECT_EQ(asked, tries);
  }
  EXPECT_EQ(concurrency.pause(std::chrono::seconds(7)), std::chrono::seconds(7));
}

TEST(Concurrency, ANumberIsNotAskedOfHeddled) {
  Concurrency concurrency(1);
  EXPECT_TRUE(*concurrency.admits());
  concurrency.started(1, ::getpid());
  EXPECT_FALSE(*concurrency.admits());
  concurrency.ended(1, {});
  EXPECT_TRUE(*concurrency.admits());
}

}  // namespace
}  // namespace heddle::cli
