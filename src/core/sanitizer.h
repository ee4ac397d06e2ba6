#pragma once

#include <pthread.h>

// Whether this is built with a sanitizer, which compilers say in different ways. HEDDLE_SANITIZED: AddressSanitizer,
// ThreadSanitizer or MemorySanitizer, whose runtimes take addresses and system calls for themselves.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HEDDLE_SANITIZED 1
#endif
#if __has_feature(thread_sanitizer)
#define HEDDLE_THREAD_SANITIZED 1
#endif
#endif

#ifdef __SANITIZE_THREAD__
#define HEDDLE_THREAD_SANITIZED 1
#endif

#ifdef HEDDLE_THREAD_SANITIZED
#include <sanitizer/tsan_interface.h>
#endif

namespace heddle {

#ifdef HEDDLE_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// To be called when pthread_mutex_timedlock has returned EOWNERDEAD: the lock is taken, but ThreadSanitizer takes that
// for a failure, and would report the unlock.
inline void tell_sanitizer_of_lock([[maybe_unused]] pthread_mutex_t& mutex) {
#ifdef HEDDLE_THREAD_SANITIZED
  __tsan_mutex_pre_lock(&mutex, __tsan_mutex_try_lock);
  __tsan_mutex_post_lock(&mutex, __tsan_mutex_try_lock, 0);
#endif
}

}  // namespace heddle
