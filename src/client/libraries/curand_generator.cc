#include "client/libraries/curand_generator.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/units.h"

namespace heddle::client {
namespace {

constexpr int kMt19937 = 142;

// Charged for the state that NVIDIA's library keeps on the device for one generator, by as much less as an H200 had
// with it (CUDA 13.0); of quasi random ones, the direction vectors of 20000 dimensions. As long as it is allocated the
// session's worker stays, and with it the state; a generator of the host needs no more than that.
size_t state_bytes(int type) {
  if (library::curand::has_64_bits(type)) return 12 * kMiB;
  return type == kMt19937 ? 60 * kMiB : 4 * kMiB;
}

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

Outcome allocate_state(Generator& generator) {
  if (generator.state) return Outcome::kSuccess;
  const size_t bytes = generator.draw.host ? 1 : state_bytes(generator.draw.type);
  return outcome_of(generator.runtime->allocate(&generator.state, bytes));
}

// What was drawn is behind the generator: numbers, or points.
void advance(Draw& draw) {
  draw.position += draw.count / draw.dimensions;
}

// A multiple of what any type's order of numbers depends on, so that pieces are what one call would have been.
constexpr uint64_t kPiece = 1 << 22;

// The numbers of a piece stand dimension by dimension, as those of the whole call shall: each dimension's go to theirs.
void take_piece(const Draw& whole, const Draw& piece, uint64_t done, uint64_t number_bytes, const char* from) {
  auto* const to = reinterpret_cast<char*>(whole.output);  // NOLINT(performance-no-int-to-ptr)
  const uint64_t all = whole.count / whole.dimensions, here = piece.count / whole.dimensions;
  for (uint64_t dimension = 0; dimension < whole.dimensions; ++dimension)
    std::memcpy(to + (dimension * all + done) * number_bytes, from + dimension * here * number_bytes,
                here * number_bytes);
}

// By NVIDIA's library in the worker, into pinned memory, a piece at a time.
Outcome generate_on_host(Generator& generator, Function function) {
  const heddle_library_functions& runtime = *generator.runtime;
  if (const Outcome outcome = allocate_state(generator); outcome != Outcome::kSuccess) return outcome;
  if (!generator.buffer) {
    const int allocated = runtime.allocate_pinned(&generator.buffer, kPiece * sizeof(double));
    if (allocated != 0) return outcome_of(allocated);
  }
  Draw piece = generator.draw;
  piece.output = reinterpret_cast<uint64_t>(generator.buffer);
  const uint64_t points = piece.count / piece.dimensions, most = kPiece / piece.dimensions;
  for (uint64_t done = 0; done < points; done += piece.count / piece.dimensions) {
    piece.count = std::min(points - done, most) * piece.dimensions;
    const auto words = piece.pack();
    const int called =
        runtime.call_at_once(static_cast<uint32_t>(library::Library::kCurand), static_cast<uint32_t>(function),
                             words.data(), static_cast<uint32_t>(words.size()), !generator.open);
    if (called != 0) return outcome_of(called);
    generator.open = true;
    take_piece(generator.draw, piece, done, library::curand::bytes_of(function),
               static_cast<const char*>(generator.buffer));
    advance(piece);
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
  of.draw.count = now.count;
  advance(of.draw);
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
  if (!captured) advance(generator.draw);
  return Outcome::kSuccess;
}

}  // namespace

Outcome generate(const std::shared_ptr<Generator>& generator, Function function) {
  Draw& draw = generator->draw;
  if (generator->runtime)
    return draw.host ? generate_on_host(*generator, function) : generate_on_device(generator, function);
  library::curand::generate(function, draw,
                            reinterpret_cast<void*>(draw.output));  // NOLINT(performance-no-int-to-ptr)
  advance(draw);
  return Outcome::kSuccess;
}

Generator::~Generator() {
  if (state) (void)runtime->release(state);
  if (buffer) (void)runtime->release_pinned(buffer);
  numbers().give_back(draw.generator);
}

std::shared_ptr<Generator> make_generator(int type, const heddle_library_functions* runtime, bool host) {
  auto made = std::make_shared<Generator>();
  made->runtime = runtime;
  made->draw.generator = numbers().take();
  made->draw.changed = numbers().change();
  made->draw.type = type;
  made->draw.host = host;
  made->draw.ordering = made->quasi() ? 201 : 101;  // CURAND_ORDERING_QUASI_DEFAULT, CURAND_ORDERING_PSEUDO_DEFAULT
  return made;
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

}  // namespace heddle::client
