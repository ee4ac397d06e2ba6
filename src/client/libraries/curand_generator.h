#pragma once

#include <memory>
#include <mutex>

#include "client/libraries/runtime_link.h"
#include "library/curand.h"

// cuRAND's generators: what one is set to, and how its numbers come to where the program wants them.
namespace heddle::client {

using library::curand::Draw;
using library::curand::Function;
using library::curand::Outcome;

// A generator, shared by the program's handle of it and the graphs that have captured its calls.
struct Generator {
  std::mutex mutex;
  const heddle_library_functions* runtime = nullptr;  // null: draws in this process
  Draw draw;
  void* stream = nullptr;
  void* state = nullptr;
  void* buffer = nullptr;  // of one that draws on the host of a GPU: pinned, kPiece numbers of the largest type
  bool open = false;

  Generator() = default;
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  bool quasi() const { return library::curand::is_quasi_random(draw.type); }
  // Back to where the offset says.
  void restart() {
    draw.position = draw.offset;
    ++draw.changed;
  }
};

// What a curandGenerator_t points to.
struct Handle {
  static constexpr uint64_t kMark = 0x6865'6464'6c65'5231;
  uint64_t mark = kMark;
  std::shared_ptr<Generator> generator = std::make_shared<Generator>();
};

// By NVIDIA's library in the worker, or its stand-in; of the host, in this process where the device is no GPU. The
// draw's output, count and distribution are set.
Outcome generate(const std::shared_ptr<Generator>& generator, Function function);
// A new one, for `runtime`'s current device; null: for this process.
std::shared_ptr<Generator> make_generator(int type, const heddle_library_functions* runtime, bool host);

Outcome outcome_of(int cuda_error);

// A status, and no exception.
template <class Body>
int answer(Body&& body) noexcept {
  try {
    return static_cast<int>(body());
  } catch (...) {
    return static_cast<int>(Outcome::kAllocationFailed);
  }
}

// `body(generator)`, guarded, where the handle is one.
template <class Body>
int on_generator(void* generator, Body&& body) noexcept {
  return answer([&] {
    const auto* const known = static_cast<const Handle*>(generator);
    if (!known || known->mark != Handle::kMark) return Outcome::kNotInitialized;
    const std::shared_ptr<Generator> shared = known->generator;
    const std::lock_guard lock(shared->mutex);
    return body(shared);
  });
}

}  // namespace heddle::client
