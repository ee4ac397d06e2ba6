#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <functional>

// The program's accesses to memory that it has no access to now: SIGSEGV, served by a thread of its own.
//
// The handler runs in the thread that faults, wherever that stands: it takes no lock, allocates nothing, posts what
// happened and waits. The serving thread makes the access possible; the program's instruction is then tried again. A
// thread that holds a lock which serving needs must not touch such memory. What is not served goes to the handler that
// was there before, or that the program installed since; where there was none, the process ends as it would have.
//
// Served: addresses in one range, in the process that called start(). System calls do not fault, but fail on such
// memory: where libheddle-redirect is preloaded (redirect/program_calls.cc) it brings what the usual ones are given. A
// child of fork() has no serving thread: its accesses end it.
namespace heddle::client {

struct PageFault {
  uint64_t address = 0;
  bool writes = false;
  int thread = 0;  // as gettid() says it
};

class PageFaults {
 public:
  // False: the address is none that it serves.
  using Serve = std::function<bool(const PageFault&)>;
  // Brings bytes, of which the first is in the range, that the program gives to a system call.
  using Touch = void (*)(void* context, uint64_t address, uint64_t bytes, bool writes);
  // Called in the handler, for each fault that was posted: rings whatever the serving thread may be waiting for.
  using Posted = void (*)(void* context);

  // Addresses in [begin, begin + bytes). Once in a process.
  static void start(uint64_t begin, uint64_t bytes, Serve serve, Posted posted, Touch touch, void* context);
  // Makes the handler the first again where the program has installed one past libheddle-redirect. To be called before
  // memory loses access; costs a system call.
  static void stay_first();

  // In the serving thread, while it waits for something: a posted fault for which `wanted` is true; else false. To be
  // answered by answer().
  struct Posting;
  static Posting* find_posted(const std::function<bool(const PageFault&)>& wanted);
  static const PageFault& fault_of(const Posting* posting);
  static void answer(Posting* posting, bool served);
};

}  // namespace heddle::client
