#include "worker/confinement.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

namespace heddle::worker {
namespace {

// Runs `body` in a process of its own, which it may confine; its result is the exit status.
template <class Body>
int in_a_process(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool refused(long result) {
  return result == -1 && errno == EPERM;
}

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

TEST(Confinement, RefusesWhatAWorkerNeverNeeds) {
  if (!can_restrict_system_calls()) GTEST_SKIP() << "this build cannot restrict system calls";
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("") || !restrict_system_calls(DeviceKind::kSoftware)) return 1;
              if (!refused(::open("/tmp/heddle-confinement-test", O_CREAT | O_WRONLY, 0600))) return 2;
              if (!refused(::open("/dev/null", O_RDWR))) return 3;
              if (!refused(::socket(AF_INET, SOCK_STREAM, 0))) return 4;
              if (!refused(::fork())) return 5;
              if (!refused(::kill(::getppid(), 0))) return 6;
              char* none[] = {nullptr};
              return refused(::execve("/bin/true", none, none)) ? 0 : 7;
            }),
            0);
}

// Workers of all tenants run as one user: what a user may do to its processes one worker must not do to another's.
TEST(Confinement, NothingIsDoneToOtherProcesses) {
  if (!can_restrict_system_calls()) GTEST_SKIP() << "this build cannot restrict system calls";
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("") || !restrict_system_calls(DeviceKind::kCuda)) return 1;
              const pid_t other = ::getppid();
              siginfo_t info{};
              info.si_code = SI_QUEUE;
              if (!refused(::syscall(SYS_rt_sigqueueinfo, other, 0, &info))) return 2;
              if (!refused(::syscall(SYS_rt_tgsigqueueinfo, other, other, 0, &info))) return 3;
              if (!refused(::setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19))) return 4;
              rlimit limit{};
              if (!refused(::prlimit(other, RLIMIT_NOFILE, nullptr, &limit))) return 5;
              if (::prlimit(0, RLIMIT_NOFILE, nullptr, &limit) != 0) return 6;
              return 0;
            }),
            0);
}

TEST(Confinement, LeavesWhatAWorkerNeeds) {
  if (!can_restrict_system_calls()) GTEST_SKIP() << "this build cannot restrict system calls";
  EXPECT_EQ(in_a_process([] {
              if (!drop_privileges("") || !restrict_system_calls(DeviceKind::kSoftware)) return 1;
              bool ran = false;
              std::thread([&] { ran = true; }).join();
              if (!ran) return 2;
              if (::open("/dev/null", O_RDONLY) < 0) return 3;
              return ::socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0 ? 0 : 4;
            }),
            0);
}

}  // namespace
}  // namespace heddle::worker
