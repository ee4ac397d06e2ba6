// Functions of the C library that libheddle-redirect stands before, for the sake of managed memory that the program has
// no access to while the device has it (client/memory/managed_memory.h):
//
// - System calls do not fault but fail on such memory: what reads and writes files and sockets is given the bytes
// first.
//   Not: io_uring, aio, other system calls with pointers, and what the C library calls inside itself but for fread and
//   fwrite.
// - A thread that blocks SIGSEGV would be ended by its first touch. Blocking it has no other effect on faults, and here
//   none at all.
// - A SIGSEGV handler of the program's comes after the client's.
//
// For everybody else each is one comparison more than the C library's own.

#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <cstdio>

#include "client/redirect/program_hooks.h"

#define HEDDLE_INTERPOSE extern "C" __attribute__((visibility("default")))

extern "C" {
__attribute__((visibility("default"))) constinit heddle::ProgramHooks heddle_program_hooks;
}

namespace {

// The C library's function that stands behind one of these, looked for once.
template <class Function>
class Behind {
 public:
  constexpr explicit Behind(const char* name) : name_(name) {}
  Function* operator*() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found) [[likely]]
      return found;
    found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
    found_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* const name_;
  std::atomic<Function*> found_{nullptr};
};

// A number: the compiler would take the bytes for read.
uintptr_t at(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

// The bytes are read, or written, by the kernel.
void touch(uintptr_t address, size_t bytes, bool writes) {
  const auto ask = heddle_program_hooks.touch.load(std::memory_order_acquire);
  if (ask) [[unlikely]]
    ask(address, bytes, writes);
}
void touch(const iovec* parts, int count, bool writes) {
  if (!heddle_program_hooks.touch.load(std::memory_order_relaxed)) [[likely]]
    return;
  for (int i = 0; i < count; ++i) touch(at(parts[i].iov_base), parts[i].iov_len, writes);
}
void touch(const msghdr* message, bool writes) {
  if (heddle_program_hooks.touch.load(std::memory_order_relaxed) && message) [[unlikely]]
    touch(message->msg_iov, static_cast<int>(message->msg_iovlen), writes);
}
constexpr bool kReads = false, kWrites = true;

int without_faults(int how, const sigset_t* set, sigset_t* before, int (*behind)(int, const sigset_t*, sigset_t*)) {
  if (!set || how == SIG_UNBLOCK || ::sigismember(set, SIGSEGV) != 1) return behind(how, set, before);
  sigset_t others = *set;
  ::sigdelset(&others, SIGSEGV);
  return behind(how, &others, before);
}

}  // namespace

// NAME(result, parameters, what is touched, arguments)
// NOLINTBEGIN(bugprone-macro-parentheses): whole declarations and statements.
#define HEDDLE_TOUCHES(name, result, parameters, touched, arguments) \
  HEDDLE_INTERPOSE result name parameters {                          \
    static constinit Behind<result parameters> behind(#name);        \
    touched;                                                         \
    return (*behind)arguments;                                       \
  }
// NOLINTEND(bugprone-macro-parentheses)

HEDDLE_TOUCHES(read, ssize_t, (int file, void* to, size_t bytes), touch(at(to), bytes, kWrites), (file, to, bytes))
HEDDLE_TOUCHES(__read_chk, ssize_t, (int file, void* to, size_t bytes, size_t room), touch(at(to), bytes, kWrites),
               (file, to, bytes, room))
HEDDLE_TOUCHES(pread, ssize_t, (int file, void* to, size_t bytes, off_t position), touch(at(to), bytes, kWrites),
               (file, to, bytes, position))
HEDDLE_TOUCHES(pread64, ssize_t, (int file, void* to, size_t bytes, off64_t position), touch(at(to), bytes, kWrites),
               (file, to, bytes, position))
HEDDLE_TOUCHES(__pread_chk, ssize_t, (int file, void* to, size_t bytes, off_t position, size_t room),
               touch(at(to), bytes, kWrites), (file, to, bytes, position, room))
HEDDLE_TOUCHES(__pread64_chk, ssize_t, (int file, void* to, size_t bytes, off64_t position, size_t room),
               touch(at(to), bytes, kWrites), (file, to, bytes, position, room))
HEDDLE_TOUCHES(write, ssize_t, (int file, const void* from, size_t bytes), touch(at(from), bytes, kReads),
               (file, from, bytes))
HEDDLE_TOUCHES(pwrite, ssize_t, (int file, const void* from, size_t bytes, off_t position),
               touch(at(from), bytes, kReads), (file, from, bytes, position))
HEDDLE_TOUCHES(pwrite64, ssize_t, (int file, const void* from, size_t bytes, off64_t position),
               touch(at(from), bytes, kReads), (file, from, bytes, position))
HEDDLE_TOUCHES(readv, ssize_t, (int file, const iovec* parts, int count), touch(parts, count, kWrites),
               (file, parts, count))
HEDDLE_TOUCHES(writev, ssize_t, (int file, const iovec* parts, int count), touch(parts, count, kReads),
               (file, parts, count))
HEDDLE_TOUCHES(preadv, ssize_t, (int file, const iovec* parts, int count, off_t position), touch(parts, count, kWrites),
               (file, parts, count, position))
HEDDLE_TOUCHES(pwritev, ssize_t, (int file, const iovec* parts, int count, off_t position), touch(parts, count, kReads),
               (file, parts, count, position))
HEDDLE_TOUCHES(preadv64, ssize_t, (int file, const iovec* parts, int count, off64_t position),
               touch(parts, count, kWrites), (file, parts, count, position))
HEDDLE_TOUCHES(pwritev64, ssize_t, (int file, const iovec* parts, int count, off64_t position),
               touch(parts, count, kReads), (file, parts, count, position))
HEDDLE_TOUCHES(recv, ssize_t, (int socket, void* to, size_t bytes, int flags), touch(at(to), bytes, kWrites),
               (socket, to, bytes, flags))
HEDDLE_TOUCHES(__recv_chk, ssize_t, (int socket, void* to, size_t bytes, size_t room, int flags),
               touch(at(to), bytes, kWrites), (socket, to, bytes, room, flags))
HEDDLE_TOUCHES(recvfrom, ssize_t,
               (int socket, void* to, size_t bytes, int flags, sockaddr* __restrict peer, socklen_t* __restrict length),
               touch(at(to), bytes, kWrites), (socket, to, bytes, flags, peer, length))
HEDDLE_TOUCHES(send, ssize_t, (int socket, const void* from, size_t bytes, int flags), touch(at(from), bytes, kReads),
               (socket, from, bytes, flags))
HEDDLE_TOUCHES(sendto, ssize_t,
               (int socket, const void* from, size_t bytes, int flags, const sockaddr* peer, socklen_t length),
               touch(at(from), bytes, kReads), (socket, from, bytes, flags, peer, length))
HEDDLE_TOUCHES(recvmsg, ssize_t, (int socket, msghdr* message, int flags), touch(message, kWrites),
               (socket, message, flags))
HEDDLE_TOUCHES(sendmsg, ssize_t, (int socket, const msghdr* message, int flags), touch(message, kReads),
               (socket, message, flags))
HEDDLE_TOUCHES(fread, size_t, (void* __restrict to, size_t size, size_t count, FILE* __restrict file),
               touch(at(to), size* count, kWrites), (to, size, count, file))
HEDDLE_TOUCHES(fread_unlocked, size_t, (void* __restrict to, size_t size, size_t count, FILE* __restrict file),
               touch(at(to), size* count, kWrites), (to, size, count, file))
HEDDLE_TOUCHES(__fread_chk, size_t,
               (void* __restrict to, size_t room, size_t size, size_t count, FILE* __restrict file),
               touch(at(to), size* count, kWrites), (to, room, size, count, file))
HEDDLE_TOUCHES(fwrite, size_t, (const void* __restrict from, size_t size, size_t count, FILE* __restrict file),
               touch(at(from), size* count, kReads), (from, size, count, file))
HEDDLE_TOUCHES(fwrite_unlocked, size_t, (const void* __restrict from, size_t size, size_t count, FILE* __restrict file),
               touch(at(from), size* count, kReads), (from, size, count, file))

HEDDLE_INTERPOSE int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  static constinit Behind<int(int, const sigset_t*, sigset_t*)> behind("pthread_sigmask");
  return without_faults(how, set, before, *behind);
}

HEDDLE_INTERPOSE int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  static constinit Behind<int(int, const sigset_t*, sigset_t*)> behind("sigprocmask");
  return without_faults(how, set, before, *behind);
}

HEDDLE_INTERPOSE int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  static constinit Behind<int(int, const struct sigaction*, struct sigaction*)> behind("sigaction");
  heddle_program_hooks.sigaction.store(*behind, std::memory_order_release);
  const auto set = heddle_program_hooks.set_fault_handler.load(std::memory_order_acquire);
  if (signal == SIGSEGV && set) return set(action, before);
  if (!action || ::sigismember(&action->sa_mask, SIGSEGV) != 1) return (*behind)(signal, action, before);
  struct sigaction others = *action;
  ::sigdelset(&others.sa_mask, SIGSEGV);
  return (*behind)(signal, &others, before);
}

HEDDLE_INTERPOSE sighandler_t signal(int number, sighandler_t handler) noexcept {
  static constinit Behind<sighandler_t(int, sighandler_t)> behind("signal");
  if (number != SIGSEGV || !heddle_program_hooks.set_fault_handler.load(std::memory_order_acquire))
    return (*behind)(number, handler);
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
