#include "client/redirect/calls.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "client/redirect/elf_file.h"
#include "client/redirect/jump.h"

namespace heddle::redirect {
namespace {

constexpr unsigned char kCall = 0xe8, kJump = 0xe9, kTwoBytes = 0x0f, kIf = 0x80;  // 0f 8x: jump if
constexpr uint64_t kDistanceBytes = 4;
// The search for a free page goes in steps, and stays well inside what a distance of four bytes reaches.
constexpr uint64_t kStep = 1ull << 20, kReach = 1ull << 30;

bool is_branch(const unsigned char* behind_opcode, uint64_t offset) {
  if (behind_opcode[-1] == kCall || behind_opcode[-1] == kJump) return true;
  return offset >= 2 && behind_opcode[-2] == kTwoBytes && (behind_opcode[-1] & 0xf0) == kIf;
}

struct Code {
  uintptr_t address = 0;  // where it runs
  uint64_t bytes = 0;
  uint64_t file_offset = 0;
  uintptr_t target = 0;
  std::string path;
  std::span<const unsigned char> span() const { return {reinterpret_cast<const unsigned char*>(address), bytes}; }
};

// From the kernel's list of mappings: what the loader calls itself need not be the file that it is.
Result<Code> code_around(const void* function) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> mappings(std::fopen("/proc/self/maps", "re"), &std::fclose);
  if (!mappings) return fail_errno(-1, "cannot read '/proc/self/maps'");
  const auto target = reinterpret_cast<uintptr_t>(function);
  char line[4096 + 128], access[5], path[4096];
  while (std::fgets(line, sizeof line, mappings.get())) {
    unsigned long start, end, offset;
    if (std::sscanf(line, "%lx-%lx %4s %lx %*s %*s %4095[^\n]", &start, &end, access, &offset, path) != 5) continue;
    if (target < start || target >= end) continue;
    if (access[0] != 'r' || access[2] != 'x') break;
    return Code{start, end - start, offset, target, path};
  }
  return fail(ErrorCode::kNotFound, "the function at %p lies in no file's code", function);
}

// A call that somebody has changed in memory, or bytes that look like one there and are none, are not touched.
Status check_against_file(const Code& code, const std::vector<uint64_t>& calls) {
  auto file = ElfFile::open(code.path);
  if (!file) return tl::unexpected(std::move(file).error());
  for (const uint64_t call : calls) {
    const char* const there = file->at(code.file_offset + call - 2, 2 + kDistanceBytes);
    if (!there || std::memcmp(there, code.span().data() + call - 2, 2 + kDistanceBytes) != 0)
      return fail(ErrorCode::kCorrupt, "'%s' is not what was loaded", code.path.c_str());
  }
  return {};
}

// A page with a jump to `to`, near `code`: never given back.
Result<uintptr_t> make_bridge(const Code& code, const void* to) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t middle = code.target / kStep * kStep;
  for (uint64_t distance = kStep; distance < kReach; distance += kStep) {
    for (const uintptr_t address : {middle - distance, middle + distance}) {
      void* const place = ::mmap(reinterpret_cast<void*>(address), page, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (place == MAP_FAILED) continue;
      if (place != reinterpret_cast<void*>(address)) {  // a kernel that takes the address as a hint
        ::munmap(place, page);
        continue;
      }
      const Jump jump = jump_to(to);
      std::memcpy(place, jump.data(), jump.size());
      if (::mprotect(place, page, PROT_READ | PROT_EXEC) == 0) return address;
      return fail_errno(-1, "the system forbids to make code");
    }
  }
  return fail(ErrorCode::kLimitExceeded, "no page is free within %lu MiB of the loader",
              static_cast<unsigned long>(kReach >> 20));
}

}  // namespace

std::vector<uint64_t> find_calls(std::span<const unsigned char> code, uintptr_t address, uintptr_t target) {
  std::vector<uint64_t> calls;
  for (uint64_t offset = 2; offset + kDistanceBytes <= code.size(); ++offset) {
    if (!is_branch(code.data() + offset, offset)) continue;
    int32_t distance;
    std::memcpy(&distance, code.data() + offset, sizeof distance);
    if (address + offset + kDistanceBytes + static_cast<uintptr_t>(static_cast<int64_t>(distance)) == target)
      calls.push_back(offset);
  }
  return calls;
}

Result<size_t> retarget_calls(const void* function, const void* to) {
  auto code = code_around(function);
  if (!code) return tl::unexpected(std::move(code).error());
  const auto calls = find_calls(code->span(), code->address, code->target);
  if (calls.empty()) return fail(ErrorCode::kNotFound, "'%s' has no direct call of it", code->path.c_str());
  HEDDLE_TRY(check_against_file(*code, calls));
  auto bridge = make_bridge(*code, to);
  if (!bridge) return tl::unexpected(std::move(bridge).error());
  for (const uint64_t call : calls) {
    const uintptr_t behind = code->address + call + kDistanceBytes;
    const auto distance = static_cast<int32_t>(static_cast<int64_t>(*bridge - behind));
    HEDDLE_TRY(write_code(reinterpret_cast<void*>(code->address + call), &distance, sizeof distance));
  }
  return calls.size();
}

}  // namespace heddle::redirect
