#include "core/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace heddle {
namespace {

// Half of what cores have for themselves: below it a reader may still find the copy in the cache.
[[maybe_unused]] constexpr size_t kFewestStreamed = size_t{512} << 10;
[[maybe_unused]] constexpr size_t kLine = 64;

#if defined(__SSE2__)
// Whole lines, to an aligned destination: the processor gathers a line's four stores and writes it once.
void stream_lines(char* to, const char* from, size_t lines) {
  for (; lines > 0; --lines, to += kLine, from += kLine) {
    for (size_t at = 0; at < kLine; at += sizeof(__m128i)) {
      const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), part);
    }
  }
  _mm_sfence();  // these stores are not ordered with those that tell others of the copy
}
#endif

}  // namespace

void stream_copy(void* to, const void* from, size_t bytes) {
#if defined(__SSE2__)
  if (bytes >= kFewestStreamed) {
    char* const target = static_cast<char*>(to);
    const char* const source = static_cast<const char*>(from);
    const size_t head = -reinterpret_cast<uintptr_t>(target) % kLine;
    const size_t whole = (bytes - head) / kLine * kLine;
    std::memcpy(target, source, head);
    stream_lines(target + head, source + head, whole / kLine);
    std::memcpy(target + head + whole, source + head + whole, bytes - head - whole);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace heddle
