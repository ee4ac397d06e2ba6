#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

// What libheddle-redirect, which stands before the program's C library, asks of libcudart about memory that the program
// may have no access to now (memory/managed_memory.h). libcudart finds the one object by its name, and fills it in when
// the program first has such memory; until then nothing is asked.
namespace heddle {

struct ProgramHooks {
  static constexpr const char* kName = "heddle_program_hooks";

  // The program gives the bytes to a system call, which would fail with EFAULT where the program itself would wait:
  // brings them. Addresses of other memory are passed over.
  std::atomic<void (*)(uintptr_t address, size_t bytes, bool writes)> touch{nullptr};
  // sigaction(SIGSEGV, ...) as the program means it: its handler comes after the client's.
  std::atomic<int (*)(const struct sigaction* action, struct sigaction* before)> set_fault_handler{nullptr};
  // The C library's own, for the client.
  std::atomic<int (*)(int signal, const struct sigaction* action, struct sigaction* before)> sigaction{nullptr};
};

}  // namespace heddle
