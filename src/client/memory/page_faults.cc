#include "client/memory/page_faults.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <mutex>
#include <thread>

#include "client/redirect/program_hooks.h"

namespace heddle::client {

// A thread that faults takes a slot, and gives it back when it was answered.
struct PageFaults::Posting {
  enum State : uint32_t { kFree, kTaken, kPosted, kServing, kServed, kRefused };
  std::atomic<uint32_t> state{kFree};
  PageFault fault;
};

namespace {

using Posting = PageFaults::Posting;

constexpr size_t kPostings = 64;      // threads that wait at once; others try again
constexpr int kPassedOn = 0x4eddd1e;  // in si_errno: the handler has seen this signal

// Constant-initialised, so that the handler never waits for a constructor.
struct Handler {
  std::atomic<uint64_t> begin{0}, bytes{0};
  std::atomic<pid_t> process{0};
  std::atomic<uint32_t> posts{0};  // the serving thread sleeps on it
  Posting postings[kPostings];
  PageFaults::Posted posted = nullptr;
  PageFaults::Touch touch = nullptr;
  void* context = nullptr;
  ProgramHooks* hooks = nullptr;  // where libheddle-redirect is preloaded
  std::mutex mutex;               // for changes of what follows
  // Whom signals go on to: the handler that was found last, and the one that it may go on to itself.
  struct sigaction theirs {
  }, older{};
};
constinit Handler the_handler;

long futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  return ::syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

// The kernel's, past the preloaded library, which means the program's handler by it.
int set_action(const struct sigaction* action, struct sigaction* before) {
  const auto behind = the_handler.hooks ? the_handler.hooks->sigaction.load() : nullptr;
  return behind ? behind(SIGSEGV, action, before) : ::sigaction(SIGSEGV, action, before);
}

bool is_write([[maybe_unused]] const ucontext_t* context) {
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;
  return (context->uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
#else
  return true;  // what was only read is pushed for nothing
#endif
}

bool is_served(uint64_t address) {
  return address - the_handler.begin.load() < the_handler.bytes.load() && the_handler.process.load() == ::getpid();
}

Posting* take_posting() {
  for (;; ::sched_yield()) {
    for (Posting& posting : the_handler.postings) {
      uint32_t expected = Posting::kFree;
      if (posting.state.compare_exchange_strong(expected, Posting::kTaken)) return &posting;
    }
  }
}

bool post_and_wait(const PageFault& fault) {
  Posting* const posting = take_posting();
  posting->fault = fault;
  posting->state.store(Posting::kPosted);
  the_handler.posts.fetch_add(1);
  futex(&the_handler.posts, FUTEX_WAKE, 1);
  the_handler.posted(the_handler.context);
  uint32_t state;
  while ((state = posting->state.load()) < Posting::kServed) futex(&posting->state, FUTEX_WAIT, state);
  posting->state.store(Posting::kFree);
  return state == Posting::kServed;
}

void end_as_without(int signal, const siginfo_t* info) {
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  set_action(&none, nullptr);
  // An instruction that faults is tried again when this returns; a signal that somebody sent is not.
  if (info->si_code <= 0) ::raise(signal);
}

void pass_to_program(int signal, siginfo_t* info, void* context) {
  // A handler that the program installed over this one may go on to this one again.
  const bool again = info->si_errno == kPassedOn;
  struct sigaction& to = again ? the_handler.older : the_handler.theirs;
  info->si_errno = kPassedOn;
  if (!(to.sa_flags & SA_SIGINFO) && to.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (!(to.sa_flags & SA_SIGINFO) && (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN))
    return end_as_without(signal, info);
  // What returning from this signal, or jumping out of the handler, undoes.
  sigset_t blocked = to.sa_mask;
  if (!(to.sa_flags & SA_NODEFER)) sigaddset(&blocked, signal);
  // Not by pthread_sigmask: under `heddle run` that leaves SIGSEGV out.
  (void)::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, nullptr, _NSIG / 8);
  const struct sigaction handler = to;
  if (handler.sa_flags & static_cast<int>(SA_RESETHAND)) to.sa_handler = SIG_DFL, to.sa_flags = 0;
  if (handler.sa_flags & SA_SIGINFO) {
    handler.sa_sigaction(signal, info, context);
  } else {
    handler.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  const bool ours = info->si_code == SEGV_ACCERR && info->si_errno != kPassedOn && is_served(address);
  const bool served = ours && post_and_wait({address, is_write(static_cast<const ucontext_t*>(context)),
                                             static_cast<int>(::syscall(SYS_gettid))});
  if (!served) pass_to_program(signal, info, context);
  errno = error;
}

struct sigaction our_action() {
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  // SA_NODEFER: what it goes on to may touch such memory where it allows itself further signals.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  return ours;
}

// The client's own calls come here too, with its locks: none of its buffers is in the range.
void touch_for_call(uintptr_t address, size_t bytes, bool writes) {
  if (bytes > 0 && is_served(address)) the_handler.touch(the_handler.context, address, bytes, writes);
}

// The program's sigaction(SIGSEGV, ...).
int set_theirs(const struct sigaction* action, struct sigaction* before) {
  const std::lock_guard lock(the_handler.mutex);
  if (before) *before = the_handler.theirs;
  if (action) the_handler.theirs = *action;
  return 0;
}

void serve_all(const PageFaults::Serve& serve) {
  for (;;) {
    const uint32_t seen = the_handler.posts.load();
    while (Posting* const posting = PageFaults::find_posted([](const PageFault&) { return true; }))
      PageFaults::answer(posting, serve(posting->fault));
    futex(&the_handler.posts, FUTEX_WAIT, seen);
  }
}

}  // namespace

void PageFaults::start(uint64_t begin, uint64_t bytes, Serve serve, Posted posted, Touch touch, void* context) {
  the_handler.posted = posted;
  the_handler.touch = touch;
  the_handler.context = context;
  the_handler.begin = begin;
  the_handler.bytes = bytes;
  the_handler.process = ::getpid();
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([serve = std::move(serve)] { serve_all(serve); }).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  the_handler.hooks = static_cast<ProgramHooks*>(::dlsym(RTLD_DEFAULT, ProgramHooks::kName));
  if (the_handler.hooks) {
    struct sigaction ignored {};
    (void)::sigaction(SIGSEGV, nullptr, &ignored);  // it learns of the C library's
  }
  stay_first();
  if (!the_handler.hooks) return;
  the_handler.hooks->set_fault_handler.store(&set_theirs, std::memory_order_release);
  the_handler.hooks->touch.store(&touch_for_call, std::memory_order_release);
}

void PageFaults::stay_first() {
  const std::lock_guard lock(the_handler.mutex);
  struct sigaction now {};
  if (set_action(nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return;
  const struct sigaction ours = our_action();
  the_handler.older = the_handler.theirs;
  the_handler.theirs = now;
  set_action(&ours, nullptr);
}

PageFaults::Posting* PageFaults::find_posted(const std::function<bool(const PageFault&)>& wanted) {
  for (Posting& posting : the_handler.postings) {
    if (posting.state.load() != Posting::kPosted || !wanted(posting.fault)) continue;
    uint32_t expected = Posting::kPosted;
    if (posting.state.compare_exchange_strong(expected, Posting::kServing)) return &posting;
  }
  return nullptr;
}

const PageFault& PageFaults::fault_of(const Posting* posting) {
  return posting->fault;
}

void PageFaults::answer(Posting* posting, bool served) {
  posting->state.store(served ? Posting::kServed : Posting::kRefused);
  futex(&posting->state, FUTEX_WAKE, INT_MAX);
}

}  // namespace heddle::client
