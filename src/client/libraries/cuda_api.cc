// libcuda.so.1, in the place of NVIDIA's driver: every function that it exports leads to heddle's libcudart, which has
// them all (client/driver). So driver programs, and programs that mix the driver API with the runtime's, share what the
// runtime shares. Nothing here looks for a device.
//
// Each export jumps through a slot (cuda_entries.h, made from cuda_exports.txt). A slot leads to heddle_driver_resolve
// until the function is called first, and to the function from then on: this library has no types of the functions'
// arguments, and none of the arguments is touched on the way.

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <string>

#include "client/driver/driver_link.h"
#include "client/libraries/cuda_entries.h"

namespace heddle::client {
namespace {

constexpr int kNotInitialized = 3;  // CUDA_ERROR_NOT_INITIALIZED

using Api = const heddle_driver_functions* (*)();

// RTLD_DEFAULT: of what the program links.
const heddle_driver_functions* table_of(void* library) {
  const auto api = reinterpret_cast<Api>(::dlsym(library, "heddle_driver_api"));
  const heddle_driver_functions* const table = api ? api() : nullptr;
  return table && table->version == kHeddleDriverVersion ? table : nullptr;
}

// The library is never closed.
const heddle_driver_functions* table_in(const std::string& path, int mode) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | mode);
  return library ? table_of(library) : nullptr;
}

std::string beside_this_library(const char* name) {
  Dl_info own{};
  if (!::dladdr(reinterpret_cast<void*>(&table_of), &own) || !own.dli_fname) return name;
  const std::string path = own.dli_fname;
  return path.substr(0, path.rfind('/') + 1) + name;
}

// The program's own runtime: one that it uses, else one that it links. A program of the driver API alone has none, and
// gets the newest.
const heddle_driver_functions* find_runtime() {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
    const auto* const table = table_in(name, RTLD_NOLOAD);
    if (table && table->in_use()) return table;
  }
  if (const auto* const linked = table_of(RTLD_DEFAULT)) return linked;
  return table_in(beside_this_library("libcudart.so.13"), RTLD_LOCAL);
}

int no_runtime() {
  return kNotInitialized;
}

}  // namespace
}  // namespace heddle::client

extern "C" {

// In rax: the number of the slot. Every argument register is saved, and the function takes the place of this call.
void heddle_driver_resolve();
asm(R"(
  .pushsection .text
  .hidden heddle_driver_resolve
  .globl heddle_driver_resolve
  .type heddle_driver_resolve, @function
heddle_driver_resolve:
  .cfi_startproc
  endbr64
  subq $184, %rsp
  .cfi_adjust_cfa_offset 184
  movq %rdi, 0(%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movups %xmm0, 48(%rsp)
  movups %xmm1, 64(%rsp)
  movups %xmm2, 80(%rsp)
  movups %xmm3, 96(%rsp)
  movups %xmm4, 112(%rsp)
  movups %xmm5, 128(%rsp)
  movups %xmm6, 144(%rsp)
  movups %xmm7, 160(%rsp)
  movl %eax, %edi
  call heddle_driver_find
  movq %rax, %r11
  movq 0(%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movups 48(%rsp), %xmm0
  movups 64(%rsp), %xmm1
  movups 80(%rsp), %xmm2
  movups 96(%rsp), %xmm3
  movups 112(%rsp), %xmm4
  movups 128(%rsp), %xmm5
  movups 144(%rsp), %xmm6
  movups 160(%rsp), %xmm7
  addq $184, %rsp
  .cfi_adjust_cfa_offset -184
  jmp *%r11
  .cfi_endproc
  .size heddle_driver_resolve, . - heddle_driver_resolve
  .popsection
)");

#define HEDDLE_DRIVER_ENTRY(number, name) reinterpret_cast<void*>(&heddle_driver_resolve),
[[gnu::visibility("hidden"), gnu::used]] void* heddle_driver_slots[] = {HEDDLE_DRIVER_ENTRIES};
#undef HEDDLE_DRIVER_ENTRY

#define HEDDLE_DRIVER_ENTRY(number, name)         \
  asm(".pushsection .text\n"                      \
      ".globl " #name                             \
      "\n"                                        \
      ".type " #name                              \
      ", @function\n"                             \
      ".p2align 4\n" #name                        \
      ":\n"                                       \
      "  endbr64\n"                               \
      "  movl $" #number                          \
      ", %eax\n"                                  \
      "  movq heddle_driver_slots + 8 * " #number \
      "(%rip), %r11\n"                            \
      "  jmp *%r11\n"                             \
      ".size " #name ", . - " #name               \
      "\n"                                        \
      ".popsection");
HEDDLE_DRIVER_ENTRIES
#undef HEDDLE_DRIVER_ENTRY

// What slot `number` leads to. The runtime is found once; two threads may find the same function at once.
[[gnu::visibility("hidden"), gnu::used]] void* heddle_driver_find(unsigned number) {
  using namespace heddle::client;
#define HEDDLE_DRIVER_ENTRY(number, name) #name,
  static constexpr const char* kNames[] = {HEDDLE_DRIVER_ENTRIES};
#undef HEDDLE_DRIVER_ENTRY
  static const heddle_driver_functions* const runtime = [] {
    const auto* const found = find_runtime();
    if (!found) std::fputs("heddle: no libcudart of heddle's is to be found beside its libcuda\n", stderr);
    return found;
  }();
  void* const function = runtime ? runtime->function(kNames[number]) : nullptr;
  if (!function) return reinterpret_cast<void*>(&no_runtime);
  std::atomic_ref(heddle_driver_slots[number]).store(function, std::memory_order_relaxed);
  return function;
}

// By this the worker tells heddle's libraries from NVIDIA's.
__attribute__((visibility("default"))) void heddle_library_client() {}

}  // extern "C"
