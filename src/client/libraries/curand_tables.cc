// The tables that cuRAND's device API is initialized from: direction vectors and scramble constants of Sobol'
// sequences. On a GPU they are NVIDIA's, which the worker's library has; elsewhere heddle's own, of which the host API
// of software devices draws too. A table stays for the process's life, as NVIDIA's do.

#include <array>
#include <cstring>

#include "client/libraries/curand_generator.h"

namespace heddle::client {
namespace {

Draw table_call(Function function, int set, void* to) {
  Draw call;
  call.ordering = set;
  call.host = true;
  call.output = reinterpret_cast<uint64_t>(to);
  call.count = library::curand::table_size(function);
  return call;
}

// By way of pinned memory.
Outcome fetch(const heddle_library_functions& runtime, Function function, int set, void* to, size_t bytes) {
  void* pinned;
  if (const int error = runtime.allocate_pinned(&pinned, bytes)) return outcome_of(error);
  const auto words = table_call(function, set, pinned).pack();
  const int called =
      runtime.call_at_once(static_cast<uint32_t>(library::Library::kCurand), static_cast<uint32_t>(function),
                           words.data(), static_cast<uint32_t>(words.size()), true);
  if (called == 0) std::memcpy(to, pinned, bytes);
  (void)runtime.release_pinned(pinned);
  return outcome_of(called);
}

struct Tables {
  std::mutex mutex;
  std::array<std::unique_ptr<char[]>, 6> known;  // directions by their four sets, shifts of 32 and 64 bits
};
Tables& tables() {
  static auto* const all = new Tables;
  return *all;
}

Outcome find(size_t which, Function function, int set, char*& found) {
  const std::lock_guard lock(tables().mutex);
  auto& known = tables().known[which];
  if (!known) {
    const size_t bytes = library::curand::table_size(function) * library::curand::bytes_of(function);
    auto made = std::make_unique<char[]>(bytes);
    const heddle_library_functions* const runtime = library_runtime();
    if (runtime && runtime->on_gpu()) {
      if (const Outcome outcome = fetch(*runtime, function, set, made.get(), bytes); outcome != Outcome::kSuccess)
        return outcome;
    } else {
      library::curand::generate(function, table_call(function, set, nullptr), made.get());
    }
    known = std::move(made);
  }
  found = known.get();
  return Outcome::kSuccess;
}

template <class Pointer>
int table(size_t which, Function function, int set, Pointer* to) noexcept {
  return answer([&] {
    char* found = nullptr;
    if (!to) return Outcome::kOutOfRange;
    const Outcome outcome = find(which, function, set, found);
    if (outcome == Outcome::kSuccess) *to = reinterpret_cast<Pointer>(found);
    return outcome;
  });
}

// curandDirectionVectorSet_t: 32 bits, scrambled ones, 64 bits, scrambled ones.
constexpr int kFirstSet = 101;
int directions(Function function, int first, int set, void** to) noexcept {
  if (set != first && set != first + 1) return static_cast<int>(Outcome::kOutOfRange);
  return table(static_cast<size_t>(set - kFirstSet), function, set, to);
}

}  // namespace

HEDDLE_LIBRARY_EXPORT int curandGetDirectionVectors32(void** vectors, int set) {
  return directions(Function::kDirections32, kFirstSet, set, vectors);
}

HEDDLE_LIBRARY_EXPORT int curandGetDirectionVectors64(void** vectors, int set) {
  return directions(Function::kDirections64, kFirstSet + 2, set, vectors);
}

HEDDLE_LIBRARY_EXPORT int curandGetScrambleConstants32(unsigned** constants) {
  return table(4, Function::kShifts32, 0, constants);
}

HEDDLE_LIBRARY_EXPORT int curandGetScrambleConstants64(unsigned long long** constants) {
  return table(5, Function::kShifts64, 0, constants);
}

}  // namespace heddle::client
