// libcurand.so.10: cuRAND's host API. Generators of the device are forwarded to the worker; those of the host too where
// the device is a GPU, so that both have NVIDIA's numbers, else they draw here, as software devices do. What NVIDIA's
// library has beyond it (quasi random numbers) answers CURAND_STATUS_TYPE_ERROR; the build makes those functions out of
// curand_exports.txt.

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <set>

#include "client/libraries/runtime_link.h"
#include "core/units.h"
#include "library/curand.h"

namespace heddle::client {
namespace {

using library::curand::Draw;
using library::curand::Function;
using library::curand::Outcome;

constexpr int kVersion = 10400;  // whose interface this is
constexpr int kMtgp32 = 141, kMt19937 = 142;

// Charged for the state that NVIDIA's library keeps on the device for one generator, by as much less as an H200 had
// with it (CUDA 13.0). As long as it is allocated the session's worker stays, and with it the state; a generator of the
// host needs no more than that.
constexpr size_t state_bytes(int type) {
  return type == kMt19937 ? 60 * kMiB : 4 * kMiB;
}

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

// Numbers of this process's generators, used again: the worker keeps something for each.
class Numbers {
 public:
  uint32_t take() {
    const std::lock_guard lock(mutex_);
    uint32_t number = 1;
    while (taken_.contains(number)) ++number;
    taken_.insert(number);
    return number;
  }
  void give_back(uint32_t number) {
    const std::lock_guard lock(mutex_);
    taken_.erase(number);
  }
  // Counts all that was ever set, so that a number that is used again means something new.
  uint32_t change() {
    const std::lock_guard lock(mutex_);
    return ++changes_ * kChangesEach;
  }

 private:
  static constexpr uint32_t kChangesEach = 1024;  // by one generator, before its count might meet another's
  std::mutex mutex_;
  std::set<uint32_t> taken_;
  uint32_t changes_ = 0;
};

Numbers& numbers() {
  static auto* const all = new Numbers;
  return *all;
}

Generator::~Generator() {
  if (state) (void)runtime->release(state);
  if (buffer) (void)runtime->release_pinned(buffer);
  numbers().give_back(draw.generator);
}

Outcome outcome_of(int cuda_error) {
  switch (cuda_error) {
    case 0:
      return Outcome::kSuccess;
    case 1:
      return Outcome::kOutOfRange;
    case 2:
      return Outcome::kAllocationFailed;
    case 3:
      return Outcome::kNotInitialized;
    case 801:
      return Outcome::kTypeError;
    default:
      return Outcome::kLaunchFailure;
  }
}

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

Outcome create(void** generator, int type, const heddle_library_functions* runtime, bool host) {
  if (!generator) return Outcome::kOutOfRange;
  if (!library::curand::is_pseudo_random(type)) return Outcome::kTypeError;
  auto* const handle = new Handle;
  Generator& made = *handle->generator;
  made.runtime = runtime;
  made.draw.generator = numbers().take();
  made.draw.changed = numbers().change();
  made.draw.type = type;
  made.draw.host = host;
  made.draw.ordering = 101;  // CURAND_ORDERING_PSEUDO_DEFAULT
  *generator = handle;
  return Outcome::kSuccess;
}

Outcome allocate_state(Generator& generator) {
  if (generator.state) return Outcome::kSuccess;
  const size_t bytes = generator.draw.host ? 1 : state_bytes(generator.draw.type);
  return outcome_of(generator.runtime->allocate(&generator.state, bytes));
}

// A multiple of what any type's order of numbers depends on, so that pieces are what one call would have been.
constexpr uint64_t kPiece = 1 << 22;

// By NVIDIA's library in the worker, into pinned memory, a piece at a time.
Outcome generate_on_host(Generator& generator, Function function) {
  const heddle_library_functions& runtime = *generator.runtime;
  if (const Outcome outcome = allocate_state(generator); outcome != Outcome::kSuccess) return outcome;
  if (!generator.buffer) {
    const int allocated = runtime.allocate_pinned(&generator.buffer, kPiece * sizeof(double));
    if (allocated != 0) return outcome_of(allocated);
  }
  Draw piece = generator.draw;
  auto* to = reinterpret_cast<char*>(piece.output);  // NOLINT(performance-no-int-to-ptr)
  piece.output = reinterpret_cast<uint64_t>(generator.buffer);
  for (uint64_t left = generator.draw.count; left > 0; left -= piece.count) {
    piece.count = std::min(left, kPiece);
    const auto words = piece.pack();
    const int called =
        runtime.call_at_once(static_cast<uint32_t>(library::Library::kCurand), static_cast<uint32_t>(function),
                             words.data(), static_cast<uint32_t>(words.size()), !generator.open);
    if (called != 0) return outcome_of(called);
    generator.open = true;
    const uint64_t bytes = piece.count * library::curand::bytes_of(function);
    std::memcpy(to, generator.buffer, bytes);
    to += bytes;
    piece.position += piece.count;
  }
  generator.draw.position = piece.position;
  return Outcome::kSuccess;
}

// A captured call draws when its graph is launched, what is then next: so each launch has other numbers.
void renew(void* generator, uint64_t* words) {
  Generator& of = **static_cast<std::shared_ptr<Generator>*>(generator);
  const auto captured = Draw::unpack({words, Draw::kWords});
  if (!captured) return;
  const std::lock_guard lock(of.mutex);
  Draw now = of.draw;
  now.output = captured->output, now.count = captured->count;
  now.a = captured->a, now.b = captured->b;
  const auto packed = now.pack();
  std::copy(packed.begin(), packed.end(), words);
  of.draw.position += now.count;
}

Outcome generate_on_device(const std::shared_ptr<Generator>& shared, Function function) {
  Generator& generator = *shared;
  if (const Outcome outcome = allocate_state(generator); outcome != Outcome::kSuccess) return outcome;
  const heddle_library_keeper keeper = keeper_of(shared, renew);
  const bool captured = generator.runtime->capture(generator.stream) != 0;
  const auto words = generator.draw.pack();
  const int called = generator.runtime->call(
      static_cast<uint32_t>(library::Library::kCurand), static_cast<uint32_t>(function), words.data(),
      static_cast<uint32_t>(words.size()), generator.stream, !generator.open, &keeper);
  if (called != 0) return outcome_of(called);
  generator.open = true;
  if (!captured) generator.draw.position += generator.draw.count;
  return Outcome::kSuccess;
}

Outcome generate(const std::shared_ptr<Generator>& generator, Function function) {
  Draw& draw = generator->draw;
  if (generator->runtime)
    return draw.host ? generate_on_host(*generator, function) : generate_on_device(generator, function);
  library::curand::generate(function, draw,
                            reinterpret_cast<void*>(draw.output));  // NOLINT(performance-no-int-to-ptr)
  draw.position += draw.count;
  return Outcome::kSuccess;
}

int draw_into(void* generator, Function function, void* to, size_t count, double a = 0, double b = 0) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (count == 0) return Outcome::kSuccess;
    if (!to) return Outcome::kOutOfRange;
    of->draw.output = reinterpret_cast<uint64_t>(to);
    of->draw.count = count;
    of->draw.a = a, of->draw.b = b;
    return generate(of, function);
  });
}

// In pairs: the generators that NVIDIA's library refuses odd counts of.
int draw_normal_into(void* generator, Function function, void* to, size_t count, double mean, double deviation) {
  const auto* const known = static_cast<const Handle*>(generator);
  if (known && known->mark == Handle::kMark && count % 2 != 0 && known->generator->draw.type < kMtgp32)
    return static_cast<int>(Outcome::kLengthNotMultiple);
  return draw_into(generator, function, to, count, mean, deviation);
}

}  // namespace

HEDDLE_LIBRARY_EXPORT int curandCreateGenerator(void** generator, int type) {
  return answer([&] {
    const heddle_library_functions* const runtime = library_runtime();
    int device, capability;
    if (!runtime || runtime->current_device(&device, &capability) != 0) return Outcome::kNotInitialized;
    return create(generator, type, runtime, false);
  });
}

HEDDLE_LIBRARY_EXPORT int curandCreateGeneratorHost(void** generator, int type) {
  return answer([&] {
    const heddle_library_functions* const runtime = library_runtime();
    return create(generator, type, runtime && runtime->on_gpu() ? runtime : nullptr, true);
  });
}

HEDDLE_LIBRARY_EXPORT int curandDestroyGenerator(void* generator) {
  return answer([&] {
    auto* const known = static_cast<Handle*>(generator);
    if (!known || known->mark != Handle::kMark) return Outcome::kNotInitialized;
    known->mark = 0;
    delete known;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandGetVersion(int* version) {
  if (!version) return static_cast<int>(Outcome::kOutOfRange);
  *version = kVersion;
  return 0;
}

HEDDLE_LIBRARY_EXPORT int curandGetProperty(int property, int* value) {
  constexpr int kParts[] = {kVersion / 1000, kVersion / 100 % 10, kVersion % 100};
  if (!value || property < 0 || property > 2) return static_cast<int>(Outcome::kOutOfRange);
  *value = kParts[property];
  return 0;
}

HEDDLE_LIBRARY_EXPORT int curandSetStream(void* generator, void* stream) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    of->stream = stream;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandSetPseudoRandomGeneratorSeed(void* generator, unsigned long long seed) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    of->draw.seed = seed;
    of->restart();
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandSetGeneratorOffset(void* generator, unsigned long long offset) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (of->draw.type == kMtgp32 || of->draw.type == kMt19937) return Outcome::kTypeError;
    of->draw.offset = offset;
    of->restart();
    return Outcome::kSuccess;
  });
}

// Taken note of for GPUs: the numbers of a software device have one order.
HEDDLE_LIBRARY_EXPORT int curandSetGeneratorOrdering(void* generator, int ordering) {
  return on_generator(generator, [&](const std::shared_ptr<Generator>& of) {
    if (ordering < 100 || ordering > 104) return Outcome::kOutOfRange;
    of->draw.ordering = ordering;
    of->restart();
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int curandSetQuasiRandomGeneratorDimensions(void* generator, unsigned) {
  return on_generator(generator, [](const std::shared_ptr<Generator>&) { return Outcome::kTypeError; });
}

// Only 64-bit quasi random generators have numbers of 64 bits.
HEDDLE_LIBRARY_EXPORT int curandGenerateLongLong(void* generator, unsigned long long*, size_t) {
  return on_generator(generator, [](const std::shared_ptr<Generator>&) { return Outcome::kTypeError; });
}

// What NVIDIA's library may do before the first numbers, done with them here.
HEDDLE_LIBRARY_EXPORT int curandGenerateSeeds(void* generator) {
  return on_generator(generator, [](const std::shared_ptr<Generator>&) { return Outcome::kSuccess; });
}

HEDDLE_LIBRARY_EXPORT int curandGenerate(void* generator, unsigned* to, size_t count) {
  return draw_into(generator, Function::kBits, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateUniform(void* generator, float* to, size_t count) {
  return draw_into(generator, Function::kUniform, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateUniformDouble(void* generator, double* to, size_t count) {
  return draw_into(generator, Function::kUniformDouble, to, count);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateNormal(void* generator, float* to, size_t count, float mean, float deviation) {
  return draw_normal_into(generator, Function::kNormal, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateNormalDouble(void* generator, double* to, size_t count, double mean,
                                                     double deviation) {
  return draw_normal_into(generator, Function::kNormalDouble, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateLogNormal(void* generator, float* to, size_t count, float mean,
                                                  float deviation) {
  return draw_normal_into(generator, Function::kLogNormal, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGenerateLogNormalDouble(void* generator, double* to, size_t count, double mean,
                                                        double deviation) {
  return draw_normal_into(generator, Function::kLogNormalDouble, to, count, mean, deviation);
}

HEDDLE_LIBRARY_EXPORT int curandGeneratePoisson(void* generator, unsigned* to, size_t count, double mean) {
  if (!(mean > 0)) return static_cast<int>(Outcome::kOutOfRange);
  return draw_into(generator, Function::kPoisson, to, count, mean);
}

}  // namespace heddle::client
