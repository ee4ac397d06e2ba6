#include "client/memory/page_move.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

namespace heddle::client {
namespace {

struct Region {
  uint64_t from = 0, to = 0;
  char access[5] = {};
  std::string name;
};

// Those that meet [address, address + bytes), in their order.
std::vector<Region> regions_at(uint64_t address, uint64_t bytes) {
  std::vector<Region> found;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
  char line[4352];
  while (maps && std::fgets(line, sizeof line, maps.get())) {
    Region region;
    unsigned long from = 0, to = 0;
    char name[4097] = {};
    if (std::sscanf(line, "%lx-%lx %4s %*s %*s %*s %4096[^\n]", &from, &to, region.access, name) < 3) continue;
    if (to <= address || from >= address + bytes) continue;
    region.from = from;
    region.to = to;
    region.name = name;
    found.push_back(std::move(region));
  }
  return found;
}

bool holds_my_stack(uint64_t address, uint64_t bytes) {
  char here = 0;
  const auto at = reinterpret_cast<uint64_t>(&here);
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return at - address < bytes;
  void* low = nullptr;
  size_t size = 0;
  ::pthread_attr_getstack(&attributes, &low, &size);
  ::pthread_attr_destroy(&attributes);
  const auto base = reinterpret_cast<uint64_t>(low);
  return base < address + bytes && address < base + size;
}

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Whole pages, whoever has what of them: a sanitizer's memcpy would find that they are not all ours.
void copy_pages(void* to, const void* from, uint64_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}

// ---- Writers wait while pages move ----
//
// The pages can only be read for that long. A thread that writes gets a signal, sees that its page is on the move,
// waits and writes again. The handler stays for good, since a thread may be on its way into it when the move ends;
// every other fault goes to the handler that was there before.

std::atomic<uint64_t> moving_from{0}, moving_to{0};  // also of the last move
std::atomic<bool> moving{false};
struct sigaction handler_before;

void pass_on(int signal, siginfo_t* info, void* context) {
  if (handler_before.sa_flags & SA_SIGINFO) return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
    return handler_before.sa_handler(signal);
  ::sigaction(signal, &handler_before, nullptr);  // the access is made again, and ends the program as it would have
}

void wait_for_move(int signal, siginfo_t* info, void* context) {
  thread_local uint64_t last_fault = 0;
  thread_local int times = 0;
  constexpr int kMostTimes = 8;  // that one address faults behind a move: then it is no matter of the move
  const auto at = reinterpret_cast<uint64_t>(info->si_addr);
  if (info->si_code != SEGV_ACCERR || at < moving_from.load() || at >= moving_to.load())
    return pass_on(signal, info, context);
  if (moving.load()) {
    times = 0;
    while (moving.load()) {
      const timespec moment{0, 10'000};
      ::nanosleep(&moment, nullptr);
    }
    return;
  }
  times = at == last_fault ? times + 1 : 0;
  last_fault = at;
  if (times > kMostTimes) pass_on(signal, info, context);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction mine {};
    mine.sa_sigaction = wait_for_move;
    mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    ::sigaction(SIGSEGV, &mine, &handler_before);
  });
}

// One move at a time.
class WritersWait {
 public:
  WritersWait(uint64_t address, uint64_t bytes) : lock_(mutex()), address_(address), bytes_(bytes) {
    install_handler();
    moving_from = address;
    moving_to = address + bytes;
    moving = true;
    still_ = ::mprotect(pointer(address), bytes, PROT_READ) == 0;
  }
  ~WritersWait() {
    if (!moved_) ::mprotect(pointer(address_), bytes_, PROT_READ | PROT_WRITE);
    moving = false;
  }
  WritersWait(const WritersWait&) = delete;
  WritersWait& operator=(const WritersWait&) = delete;

  bool still() const { return still_; }
  // What lies at the address is another mapping now.
  bool moved(bool did) { return moved_ = did; }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }

  const std::lock_guard<std::mutex> lock_;
  const uint64_t address_, bytes_;
  bool still_ = false, moved_ = false;
};

}  // namespace

std::string obstacle_to_move(uint64_t address, uint64_t bytes) {
  if (holds_my_stack(address, bytes)) return "it is on a thread's stack";
  uint64_t next = address;
  for (const Region& region : regions_at(address, bytes)) {
    if (region.from > next) break;
    next = region.to;
    if (region.access[3] == 's') return "it is a mapping that others may share (" + region.name + ")";
    if (region.access[0] != 'r' || region.access[1] != 'w') return "it cannot be read and written";
    if (region.access[2] == 'x') return "it holds code";
    if (region.name == "[stack]") return "it is on a thread's stack";
  }
  return next >= address + bytes ? "" : "not all of it is mapped";
}

bool move_pages_out(uint64_t address, uint64_t bytes, void* to) {
  WritersWait wait(address, bytes);
  if (!wait.still()) return false;
  copy_pages(to, pointer(address), bytes);
  // Of a shared mapping, an old size of 0 makes a second one of the same pages; and it takes the place in one step.
  return wait.moved(::mremap(to, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) != MAP_FAILED);
}

bool move_pages_back(uint64_t address, uint64_t bytes) {
  for (const Region& region : regions_at(address, bytes)) {
    if (region.access[3] != 's') return false;
  }
  void* const fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return false;
  WritersWait wait(address, bytes);
  if (wait.still()) copy_pages(fresh, pointer(address), bytes);
  const bool moved =
      wait.still() && ::mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) != MAP_FAILED;
  if (!moved) ::munmap(fresh, bytes);
  return wait.moved(moved);
}

}  // namespace heddle::client
