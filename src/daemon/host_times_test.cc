// What the kernel says of how much a process has computed.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "daemon/proc_file.h"
#include "daemon/spawn.h"

namespace heddle::daemon {
namespace {

Fd pidfd_of(pid_t pid) {
  return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

TEST(ProcessTime, GrowsByWhatTheProcessComputes) {
  const Fd self = pidfd_of(::getpid());
  const auto before = process_time(::getpid(), self);
  ASSERT_TRUE(before);
  for (const clock_t begin = ::clock(); ::clock() - begin < CLOCKS_PER_SEC / 100;) {
  }
  const auto after = process_time(::getpid(), self);
  ASSERT_TRUE(after);
  EXPECT_GE(*after - *before, std::chrono::milliseconds(9));  // the two clocks round
}

// Dead, its number is another process's before long.
TEST(ProcessTime, IsNotKnownOfAProcessThatHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const Fd process = pidfd_of(child);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process_time(child, process));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(process_time(child, process));
  EXPECT_FALSE(process_time(::getpid(), process)) << "as if the number had been given anew";
  EXPECT_FALSE(process_time(::getpid(), Fd())) << "without a pidfd nobody knows whose number it is";
}

}  // namespace
}  // namespace heddle::daemon
