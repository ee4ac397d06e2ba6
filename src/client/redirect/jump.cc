#include "client/redirect/jump.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

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

}  // namespace

Status write_jump(void* from, uint64_t size, const void* to) {
  const auto start = reinterpret_cast<uintptr_t>(from);
  if (size < kJumpBytes) {
    const uint64_t room = (start + size + kFunctionAlign - 1) / kFunctionAlign * kFunctionAlign - start;
    if (room < kJumpBytes || !is_padding(static_cast<unsigned char*>(from) + size, room - size))
      return fail(ErrorCode::kNotSupported, "the function has %lu bytes, a jump needs %lu",
                  static_cast<unsigned long>(size), static_cast<unsigned long>(kJumpBytes));
  }
  // jmp *0(%rip), and the address behind it.
  unsigned char jump[kJumpBytes] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(jump + 6, &to, sizeof to);

  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = start / page * page;
  const size_t bytes = (start + kJumpBytes - first + page - 1) / page * page;
  if (::mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_WRITE) != 0)
    return fail_errno(-1, "the system forbids to change the program's code");
  std::memcpy(from, jump, sizeof jump);
  if (::mprotect(reinterpret_cast<void*>(first), bytes, PROT_READ | PROT_EXEC) != 0)
    return fail_errno(-1, "the program's code cannot be made executable again");
  return {};
}

}  // namespace heddle::redirect
