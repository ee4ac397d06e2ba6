#include "client/redirect/jump.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "core/fd.h"

namespace heddle::redirect {
namespace {

constexpr uint64_t kFunctionAlign = 16;

// What compilers and linkers put between functions: nop in its lengths, int3, zeros.
bool is_padding(const unsigned char* bytes, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const unsigned char byte = bytes[i];
    const bool known = byte == 0x90 || byte == 0xcc || byte == 0x00 || byte == 0x66 || byte == 0x0f || byte == 0x1f ||
                       byte == 0x2e || byte == 0x84 || byte == 0x40 || byte == 0x44 || byte == 0x80;
    if (!known) return false;
  }
  return true;
}

bool write_through_file(void* to, const void* bytes, uint64_t count) {
  const Fd memory(::open("/proc/self/mem", O_WRONLY | O_CLOEXEC));
  return memory && ::pwrite(memory.get(), bytes, count, static_cast<off_t>(reinterpret_cast<uintptr_t>(to))) ==
                       static_cast<ssize_t>(count);
}

Status write_to_pages(void* to, const void* bytes, uint64_t count) {
  const auto start = reinterpret_cast<uintptr_t>(to);
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = start / page * page;
  const size_t pages = (start + count - first + page - 1) / page * page;
  if (::mprotect(reinterpret_cast<void*>(first), pages, PROT_READ | PROT_WRITE) != 0)
    return fail_errno(-1, "the system forbids to change the program's code");
  std::memcpy(to, bytes, count);
  if (::mprotect(reinterpret_cast<void*>(first), pages, PROT_READ | PROT_EXEC) != 0)
    return fail_errno(-1, "the program's code cannot be made executable again");
  return {};
}

}  // namespace

// jmp *0(%rip), and the address behind it.
Jump jump_to(const void* to) {
  Jump jump = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(jump.data() + 6, &to, sizeof to);
  return jump;
}

Status write_jump(void* from, uint64_t size, const void* to) {
  const auto start = reinterpret_cast<uintptr_t>(from);
  if (size < kJumpBytes) {
    const uint64_t room = (start + size + kFunctionAlign - 1) / kFunctionAlign * kFunctionAlign - start;
    if (room < kJumpBytes || !is_padding(static_cast<unsigned char*>(from) + size, room - size))
      return fail(ErrorCode::kNotSupported, "the function has %lu bytes, a jump needs %lu",
                  static_cast<unsigned long>(size), static_cast<unsigned long>(kJumpBytes));
  }
  const Jump jump = jump_to(to);
  return write_code(from, jump.data(), jump.size());
}

uint64_t empty_function_size(const void* function) {
  constexpr std::array<unsigned char, 4> kMark = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
  constexpr unsigned char kReturn = 0xc3;
  const auto* code = static_cast<const unsigned char*>(function);
  if (*code == kReturn) return 1;
  const bool marked = std::memcmp(code, kMark.data(), kMark.size()) == 0;
  return marked && code[kMark.size()] == kReturn ? kMark.size() + 1 : 0;
}

Status write_code(void* to, const void* bytes, uint64_t count) {
  return write_through_file(to, bytes, count) ? Status{} : write_to_pages(to, bytes, count);
}

}  // namespace heddle::redirect
