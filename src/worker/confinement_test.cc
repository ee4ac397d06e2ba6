#include "worker/confinement.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>

#include "worker/testing/in_a_process.h"

namespace heddle::worker {
namespace {

using testing::in_a_process;

TEST(Confinement, NoDumpsAndNoNewPrivileges) {
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("")) return 1;
              return ::prctl(PR_GET_DUMPABLE) == 0 && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 2;
            }),
            0);
}

TEST(Confinement, AUserThatDoesNotExistIsAnError) {
  EXPECT_EQ(in_a_process([] { return drop_privileges("no-such-user-at-all") ? 1 : 0; }), 0);
}

TEST(Confinement, RootBecomesTheUserForGood) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("nobody")) return 1;
              return ::getuid() != 0 && ::getgroups(0, nullptr) == 0 && ::setuid(0) != 0 ? 0 : 2;
            }),
            0);
}

TEST(Confinement, RootBecomesAUidThatIsNobodys) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("212345")) return 1;
              return ::getuid() == 212345 && ::getgid() == 212345 && ::getgroups(0, nullptr) == 0 ? 0 : 2;
            }),
            0);
}

// A tenant whose work swells costs itself its worker, not heddled its life.
TEST(Confinement, AWorkerGoesFirstWhenMemoryRunsOut) {
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("")) return 1;
              std::FILE* file = std::fopen("/proc/self/oom_score_adj", "r");
              int score = 0;
              return file && std::fscanf(file, "%d", &score) == 1 && score >= 500 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace heddle::worker
