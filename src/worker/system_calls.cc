#include "worker/system_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "core/log.h"
#include "core/sanitizer.h"

#if defined(HEDDLE_HAS_SECCOMP) && !defined(HEDDLE_SANITIZED)
#include <seccomp.h>
#endif

namespace heddle::worker {

#if defined(HEDDLE_HAS_SECCOMP) && !defined(HEDDLE_SANITIZED)

namespace {

using Filter = std::unique_ptr<void, decltype(&::seccomp_release)>;

// What a worker on a software device calls, whatever the arguments. Names that libseccomp does not know are passed
// over.
constexpr const char* kAllowed[] = {
    // Memory.
    "brk", "madvise", "mincore", "mmap", "mprotect", "mremap", "msync", "munmap", "memfd_create", "get_mempolicy",
    "membarrier",
    // Threads, and where they run.
    "exit", "exit_group", "futex", "futex_waitv", "get_robust_list", "getcpu", "rseq", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_yield",
    "set_robust_list", "set_tid_address", "arch_prctl",
    // Time and signals of its own.
    "clock_getres", "clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "pause", "restart_syscall",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
    "sigaltstack", "time", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    // Descriptors that it has, and heddled's socket.
    "close", "close_range", "connect", "dup", "dup2", "dup3", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait",
    "eventfd2", "fcntl", "getpeername", "getsockname", "getsockopt", "lseek", "pipe2", "poll", "ppoll", "pread64",
    "preadv", "pselect6", "pwrite64", "pwritev", "read", "readv", "recvfrom", "recvmsg", "select", "sendmsg", "sendto",
    "setsockopt", "shutdown", "socketpair", "write", "writev",
    // Files, to read them.
    "access", "faccessat", "faccessat2", "fstat", "fstatfs", "getcwd", "getdents64", "lstat", "newfstatat", "readlink",
    "readlinkat", "stat", "statfs", "statx",
    // What it is, and what it runs on.
    "getegid", "geteuid", "getgid", "getgroups", "getpgrp", "getpid", "getppid", "getrandom", "getresgid", "getresuid",
    "getrlimit", "getrusage", "gettid", "getuid", "prctl", "sysinfo", "times", "uname"};

// What a worker on a CUDA device must not call.
constexpr const char* kRefused[] = {"execve",
                                    "execveat",
                                    "ptrace",
                                    "process_vm_readv",
                                    "process_vm_writev",
                                    "fork",
                                    "vfork",
                                    "kill",
                                    "tkill",
                                    "pidfd_open",
                                    "pidfd_getfd",
                                    "pidfd_send_signal",
                                    "rt_sigqueueinfo",
                                    "rt_tgsigqueueinfo",
                                    "setpriority",
                                    "ioprio_set",
                                    "sched_setparam",
                                    "sched_setscheduler",
                                    "sched_setattr",
                                    "kcmp",
                                    "process_madvise",
                                    "process_mrelease",
                                    "mknod",
                                    "mknodat",
                                    "chown",
                                    "lchown",
                                    "fchownat",
                                    "chroot",
                                    "pivot_root",
                                    "mount",
                                    "umount2",
                                    "setns",
                                    "unshare",
                                    "bpf",
                                    "perf_event_open",
                                    "userfaultfd",
                                    "init_module",
                                    "finit_module",
                                    "delete_module",
                                    "kexec_load",
                                    "keyctl",
                                    "add_key",
                                    "request_key",
                                    "io_uring_setup",
                                    "open_by_handle_at",
                                    "setuid",
                                    "setgid",
                                    "setresuid",
                                    "setresgid",
                                    "setgroups",
                                    "reboot",
                                    "swapon",
                                    "swapoff",
                                    "settimeofday",
                                    "clock_settime",
                                    "fanotify_init",
                                    "mount_setattr",
                                    "move_mount",
                                    "open_tree",
                                    "fsopen",
                                    "memfd_secret"};

Status rule(const Filter& filter, uint32_t action, const char* name, unsigned count = 0,
            const scmp_arg_cmp* conditions = nullptr) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return {};
  const int result = ::seccomp_rule_add_array(filter.get(), action, number, count, conditions);
  if (result != 0) return fail_errno(-result, "cannot make a rule for system call %s", name);
  return {};
}

constexpr uint32_t kAllow = SCMP_ACT_ALLOW;
const uint32_t kRefuse = SCMP_ACT_ERRNO(EPERM);

Status allow_reading(const Filter& filter, const char* name, unsigned flags_argument) {
  const scmp_arg_cmp condition = SCMP_CMP(flags_argument, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);
  return rule(filter, kAllow, name, 1, &condition);
}

// Only threads, only signals to itself, only limits of its own (0 stands for the caller), only sockets to call heddled.
Status fill_for_software(const Filter& filter) {
  for (const char* name : kAllowed) HEDDLE_TRY(rule(filter, kAllow, name));
  HEDDLE_TRY(allow_reading(filter, "open", 1));
  HEDDLE_TRY(allow_reading(filter, "openat", 2));
  const scmp_arg_cmp unix_family = SCMP_CMP(0, SCMP_CMP_EQ, AF_UNIX);
  HEDDLE_TRY(rule(filter, kAllow, "socket", 1, &unix_family));
  const scmp_arg_cmp shared_memory = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_VM | CLONE_THREAD, CLONE_VM | CLONE_THREAD);
  HEDDLE_TRY(rule(filter, kAllow, "clone", 1, &shared_memory));
  const scmp_arg_cmp itself = SCMP_CMP(0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()));
  HEDDLE_TRY(rule(filter, kAllow, "tgkill", 1, &itself));
  const scmp_arg_cmp caller = SCMP_CMP(0, SCMP_CMP_EQ, 0);
  HEDDLE_TRY(rule(filter, kAllow, "prlimit64", 1, &caller));
  const scmp_arg_cmp terminal = SCMP_CMP(1, SCMP_CMP_EQ, TCGETS);  // the C library asks what a stream is
  return rule(filter, kAllow, "ioctl", 1, &terminal);
}

Status fill_for_cuda(const Filter& filter) {
  for (const char* name : kRefused) HEDDLE_TRY(rule(filter, kRefuse, name));
  const scmp_arg_cmp other_family = SCMP_CMP(0, SCMP_CMP_NE, AF_UNIX);
  HEDDLE_TRY(rule(filter, kRefuse, "socket", 1, &other_family));
  const scmp_arg_cmp own_memory = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_VM, 0);
  HEDDLE_TRY(rule(filter, kRefuse, "clone", 1, &own_memory));
  const scmp_arg_cmp other_process = SCMP_CMP(0, SCMP_CMP_NE, static_cast<scmp_datum_t>(::getpid()));
  HEDDLE_TRY(rule(filter, kRefuse, "tgkill", 1, &other_process));
  const scmp_arg_cmp somebody = SCMP_CMP(0, SCMP_CMP_NE, 0);
  return rule(filter, kRefuse, "prlimit64", 1, &somebody);
}

}  // namespace

Status restrict_system_calls(DeviceKind device) {
  const bool software = device == DeviceKind::kSoftware;
  const Filter filter(::seccomp_init(software ? kRefuse : kAllow), &::seccomp_release);
  if (!filter) return fail(ErrorCode::kSystem, "cannot make a system call filter");
  HEDDLE_TRY(software ? fill_for_software(filter) : fill_for_cuda(filter));
  // clone3 hides its flags in memory: told that there is none, the C library uses clone.
  HEDDLE_TRY(rule(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3"));
  // The device's threads run already: all of them are filtered.
  int result = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1);
  if (result == 0) result = ::seccomp_load(filter.get());
  if (result != 0) return fail_errno(-result, "cannot load the system call filter");
  return {};
}

bool can_restrict_system_calls() {
  return true;
}

#else

bool can_restrict_system_calls() {
  return false;
}

Status restrict_system_calls(DeviceKind) {
  logger("worker")->warn("system calls are not restricted: this build has a sanitizer or no libseccomp");
  return {};
}

#endif

}  // namespace heddle::worker
