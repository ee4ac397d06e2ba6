#include "worker/confinement.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "core/log.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEDDLE_SANITIZED 1
#endif
#endif

#if defined(HEDDLE_HAS_SECCOMP) && !defined(HEDDLE_SANITIZED)
#include <seccomp.h>
#endif

namespace heddle::worker {
namespace {

Status become(const std::string& user) {
  errno = 0;
  const passwd* entry = ::getpwnam(user.c_str());
  if (!entry) return fail_errno(errno, "cannot become '%s': no such user", user.c_str());
  if (::getuid() == entry->pw_uid && ::getuid() != 0) return {};
  if (::setgroups(0, nullptr) != 0 || ::setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) != 0 ||
      ::setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) != 0)
    return fail_errno(-1, "cannot become '%s'", user.c_str());
  return {};
}

}  // namespace

Status drop_privileges(const std::string& user) {
  if (!user.empty()) HEDDLE_TRY(become(user));
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail_errno(-1, "cannot forbid core dumps");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno(-1, "cannot renounce new privileges");
  return {};
}

#if defined(HEDDLE_HAS_SECCOMP) && !defined(HEDDLE_SANITIZED)

namespace {

using Filter = std::unique_ptr<void, decltype(&::seccomp_release)>;

// Calls that are refused whatever their arguments. Those that the running kernel does not know are passed over.
constexpr const char* kRefused[] = {
    "execve",
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
    "memfd_secret",
};

// And these, which NVIDIA's driver needs.
constexpr const char* kRefusedOnSoftware[] = {
    "bind",    "listen",    "accept", "accept4",  "creat",     "truncate",      "link",       "linkat",
    "symlink", "symlinkat", "rename", "renameat", "renameat2", "unlink",        "unlinkat",   "mkdir",
    "mkdirat", "rmdir",     "chmod",  "fchmodat", "openat2",   "migrate_pages", "move_pages",
};

Status add(const Filter& filter, const char* name, unsigned count, const scmp_arg_cmp* conditions) {
  const int number = ::seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR) return {};
  const int result = ::seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(EPERM), number, count, conditions);
  if (result != 0) return fail_errno(-result, "cannot refuse system call %s", name);
  return {};
}

// Refuses open for writing: either bit of the access mode, or a file made.
Status refuse_writing(const Filter& filter, const char* name, unsigned flags_argument) {
  for (const scmp_datum_t bit : {O_WRONLY, O_RDWR, O_CREAT}) {
    const scmp_arg_cmp condition = SCMP_CMP(flags_argument, SCMP_CMP_MASKED_EQ, bit, bit);
    HEDDLE_TRY(add(filter, name, 1, &condition));
  }
  return {};
}

Status fill(const Filter& filter, DeviceKind device) {
  for (const char* name : kRefused) HEDDLE_TRY(add(filter, name, 0, nullptr));
  if (device == DeviceKind::kSoftware) {
    for (const char* name : kRefusedOnSoftware) HEDDLE_TRY(add(filter, name, 0, nullptr));
    HEDDLE_TRY(refuse_writing(filter, "open", 1));
    HEDDLE_TRY(refuse_writing(filter, "openat", 2));
  }
  // Only sockets to call heddled, only threads. clone3 hides its flags in memory: without it the C library uses clone.
  const scmp_arg_cmp other_family = SCMP_CMP(0, SCMP_CMP_NE, AF_UNIX);
  HEDDLE_TRY(add(filter, "socket", 1, &other_family));
  const scmp_arg_cmp own_memory = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_VM, 0);
  HEDDLE_TRY(add(filter, "clone", 1, &own_memory));
  const scmp_arg_cmp other_process = SCMP_CMP(0, SCMP_CMP_NE, static_cast<scmp_datum_t>(::getpid()));
  HEDDLE_TRY(add(filter, "tgkill", 1, &other_process));
  // Limits and processors of its own: 0 stands for the caller.
  const scmp_arg_cmp somebody = SCMP_CMP(0, SCMP_CMP_NE, 0);
  HEDDLE_TRY(add(filter, "prlimit64", 1, &somebody));
  const int number = ::seccomp_syscall_resolve_name("clone3");
  const int result = ::seccomp_rule_add_array(filter.get(), SCMP_ACT_ERRNO(ENOSYS), number, 0, nullptr);
  if (result != 0) return fail_errno(-result, "cannot refuse system call clone3");
  return {};
}

}  // namespace

Status restrict_system_calls(DeviceKind device) {
  const Filter filter(::seccomp_init(SCMP_ACT_ALLOW), &::seccomp_release);
  if (!filter) return fail(ErrorCode::kSystem, "cannot make a system call filter");
  HEDDLE_TRY(fill(filter, device));
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
