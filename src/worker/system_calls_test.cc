#include "worker/system_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "worker/confinement.h"
#include "worker/testing/in_a_process.h"

namespace heddle::worker {
namespace {

using testing::in_a_process;

bool refused(long result) {
  return result == -1 && errno == EPERM;
}

// What a test does first in its process.
bool confine(DeviceKind device) {
  return drop_privileges("") && restrict_system_calls(device);
}

class SystemCalls : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (!can_restrict_system_calls()) GTEST_SKIP() << "this build cannot restrict system calls";
  }
};

TEST_P(SystemCalls, NoOtherProgramsAndNoNetwork) {
  EXPECT_EQ(in_a_process([] {
              if (!confine(GetParam())) return 1;
              if (!refused(::socket(AF_INET, SOCK_STREAM, 0))) return 2;
              if (!refused(::fork())) return 3;
              char* none[] = {nullptr};
              return refused(::execve("/bin/true", none, none)) ? 0 : 4;
            }),
            0);
}

// Workers of all tenants run as one user: what a user may do to its processes one worker must not do to another's.
TEST_P(SystemCalls, NothingIsDoneToOtherProcesses) {
  EXPECT_EQ(in_a_process([] {
              if (!confine(GetParam())) return 1;
              const pid_t other = ::getppid();
              if (!refused(::kill(other, 0))) return 2;
              siginfo_t info{};
              info.si_code = SI_QUEUE;
              if (!refused(::syscall(SYS_rt_sigqueueinfo, other, 0, &info))) return 3;
              if (!refused(::syscall(SYS_rt_tgsigqueueinfo, other, other, 0, &info))) return 4;
              if (!refused(::setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19))) return 5;
              rlimit limit{};
              if (!refused(::prlimit(other, RLIMIT_NOFILE, nullptr, &limit))) return 6;
              char byte;
              iovec here{&byte, 1}, there{&byte, 1};
              if (!refused(::process_vm_readv(other, &here, 1, &there, 1, 0))) return 7;
              return ::prlimit(0, RLIMIT_NOFILE, nullptr, &limit) == 0 ? 0 : 8;
            }),
            0);
}

TEST_P(SystemCalls, LeavesWhatAWorkerNeeds) {
  EXPECT_EQ(in_a_process([] {
              if (!confine(GetParam())) return 1;
              bool ran = false;
              std::thread([&] { ran = true; }).join();
              if (!ran) return 2;
              if (::open("/dev/null", O_RDONLY) < 0) return 3;
              return ::socket(AF_UNIX, SOCK_SEQPACKET, 0) >= 0 ? 0 : 4;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Devices, SystemCalls, ::testing::Values(DeviceKind::kSoftware, DeviceKind::kCuda),
                         [](const auto& device) {
                           return device.param == DeviceKind::kSoftware ? "Software" : "Cuda";
                         });

class SoftwareSystemCalls : public SystemCalls {};

TEST_P(SoftwareSystemCalls, FilesAreOnlyRead) {
  EXPECT_EQ(in_a_process([] {
              if (!confine(GetParam())) return 1;
              if (!refused(::open("/tmp/heddle-system-calls-test", O_CREAT | O_WRONLY, 0600))) return 2;
              if (!refused(::open("/dev/null", O_RDWR))) return 3;
              if (!refused(::open("/dev/null", O_RDONLY | O_TRUNC))) return 4;
              if (!refused(::mkdir("/tmp/heddle-system-calls-test", 0700))) return 5;
              return refused(::unlink("/tmp/heddle-system-calls-test")) ? 0 : 6;
            }),
            0);
}

// Its standard error is heddle's log, which other workers write to.
TEST_P(SoftwareSystemCalls, TheLogIsNotCut) {
  EXPECT_EQ(in_a_process([] {
              const int log = ::memfd_create("log", 0);
              if (log < 0 || !confine(GetParam())) return 1;
              if (!refused(::ftruncate(log, 0))) return 2;
              return refused(::syscall(SYS_fallocate, log, 0, 0, 1)) ? 0 : 3;
            }),
            0);
}

// Not named anywhere: refused because nothing allows it.
TEST_P(SoftwareSystemCalls, WhatIsNotListedIsRefused) {
  EXPECT_EQ(in_a_process([] {
              if (!confine(GetParam())) return 1;
              if (!refused(::syscall(SYS_personality, 0))) return 2;
              return refused(::syscall(SYS_inotify_init1, 0)) ? 0 : 3;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(Devices, SoftwareSystemCalls, ::testing::Values(DeviceKind::kSoftware),
                         [](const auto&) { return "Software"; });

}  // namespace
}  // namespace heddle::worker
