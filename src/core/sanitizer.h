#pragma once

// Whether this is built with a sanitizer, which compilers say in different ways. HEDDLE_SANITIZED: AddressSanitizer,
// ThreadSanitizer or MemorySanitizer, whose runtimes take addresses and system calls for themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEDDLE_SANITIZED 1
#endif
#endif

namespace heddle {

#ifdef HEDDLE_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace heddle
