#include "client/libraries/cublas_handle.h"

#include <cstring>

#include "core/units.h"

namespace heddle::client {
namespace {

using namespace library::cublas;  // NOLINT(google-build-using-namespace): what this packs

// What NVIDIA documents as the default workspace: 32 MiB from compute capability 9.0 on, 4 MiB before.
constexpr uint64_t kWorkspaceBytes = 32 * kMiB, kSmallWorkspaceBytes = 4 * kMiB;
constexpr uint64_t kAnswerBytes = 4096;
constexpr uint64_t kRotationStep = 64;  // from one value of rotg and rotmg to the next, of which none is larger

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

bool is_rotation(const Function& function) {
  return function.shape == Shape::kRotg || function.shape == Shape::kRotmg;
}

// Calls `body(kind, word)` for each argument, where `word` is its first.
template <class Body>
void for_each(const Function& function, CublasHandle::Words& words, Body&& body) {
  uint64_t* word = words.values + Setting::kWords;
  for (const Kind kind : function.kinds) {
    body(kind, word);
    word += words_of(kind);
  }
}

}  // namespace

Outcome outcome_of(int cuda_error) {
  switch (cuda_error) {
    case 0:
      return Outcome::kSuccess;
    case 1:  // cudaErrorInvalidValue
      return Outcome::kInvalidValue;
    case 2:  // cudaErrorMemoryAllocation
      return Outcome::kAllocFailed;
    case 3:  // cudaErrorInitializationError
      return Outcome::kNotInitialized;
    case 801:  // cudaErrorNotSupported, and for streams that capture
    case 900:
      return Outcome::kNotSupported;
    default:
      return Outcome::kExecutionFailed;
  }
}

CublasHandle::Scratch::~Scratch() {
  if (address != 0) (void)runtime.release(pointer(address));
}

void CublasHandle::release() {
  scratches_.clear();
  mark_ = 0;
}

Outcome CublasHandle::find_scratch(SharedScratch& scratch) {
  const uint64_t capture = runtime_.capture(stream);
  SharedScratch& known = scratches_[{stream, capture != 0}];
  const bool serves = known && known->capture == capture && (user_workspace_ || known->workspace_bytes > 0);
  if (serves) {
    scratch = known;
    return Outcome::kSuccess;
  }
  int device, capability_major;
  if (const int error = runtime_.current_device(&device, &capability_major)) return outcome_of(error);
  scratch = std::make_shared<Scratch>(runtime_, capture);
  if (!user_workspace_) scratch->workspace_bytes = capability_major >= 9 ? kWorkspaceBytes : kSmallWorkspaceBytes;
  void* allocated;
  if (const int error = runtime_.allocate(&allocated, scratch->workspace_bytes + kAnswerBytes))
    return outcome_of(error);
  scratch->address = reinterpret_cast<uint64_t>(allocated);
  known = scratch;
  return Outcome::kSuccess;
}

Outcome CublasHandle::pack_scalars(const Function& function, Words& words) {
  const std::span arguments(words.values + Setting::kWords, words.count - Setting::kWords);
  const uint32_t bytes = scalar_bytes(function, arguments);
  if (bytes == 0) return Outcome::kNotSupported;
  Outcome outcome = Outcome::kSuccess;
  for_each(function, words, [&](Kind kind, uint64_t* word) {
    if (kind != Kind::kScalar && kind != Kind::kParameters) return;
    const void* const host = pointer(*word);
    if (!host) outcome = Outcome::kInvalidValue;
    if (host) std::memcpy(word, host, kind == Kind::kScalar ? bytes : 5 * bytes);
  });
  return outcome;
}

// The handle's first call sees that the worker has the library.
Outcome CublasHandle::hand_over(const Words& words, const SharedScratch& scratch) {
  const heddle_library_keeper keeper = keeper_of(scratch);
  const Outcome outcome =
      outcome_of(runtime_.call(static_cast<uint32_t>(library::Library::kCublas), static_cast<uint32_t>(words.number),
                               words.values, words.count, stream, !open_, &keeper));
  open_ |= outcome == Outcome::kSuccess;
  return outcome;
}

Outcome CublasHandle::fetch(void* to, uint64_t from, size_t bytes) {
  return outcome_of(runtime_.copy(to, bytes, pointer(from), bytes, bytes, 1, stream, true));
}

Outcome CublasHandle::call(Words& words) {
  const std::lock_guard lock(mutex);
  const Function& function = functions()[static_cast<uint32_t>(words.number)];
  SharedScratch its;
  if (const Outcome outcome = find_scratch(its); outcome != Outcome::kSuccess) return outcome;
  Setting setting{words.wide,   scalars_on_device,   atomics, static_cast<uint32_t>(math_mode),
                  its->address, its->workspace_bytes};
  if (user_workspace_)
    setting.workspace = reinterpret_cast<uint64_t>(user_workspace_), setting.workspace_bytes = user_bytes_;
  const auto packed = setting.pack();
  std::copy(packed.begin(), packed.end(), words.values);
  if (scalars_on_device) return hand_over(words, its);

  if (is_rotation(function)) return call_rotation(function, words, its);
  if (const Outcome outcome = pack_scalars(function, words); outcome != Outcome::kSuccess) return outcome;
  void* answer = nullptr;
  bool answers = false;
  for_each(function, words, [&](Kind kind, uint64_t* word) {
    if (kind != Kind::kAnswer) return;
    answer = pointer(*word);
    answers = true;
    *word = its->answers();
  });
  if (answers && !answer) return Outcome::kInvalidValue;
  const Outcome outcome = hand_over(words, its);
  if (outcome != Outcome::kSuccess || !answers) return outcome;
  return fetch(answer, its->answers(), answer_bytes(function, words.wide));
}

// The values lie on the host: they are brought to the device and back.
Outcome CublasHandle::call_rotation(const Function& function, Words& words, const SharedScratch& scratch) {
  const size_t bytes = answer_bytes(function, false);
  char values[5 * kRotationStep] = {};
  void* hosts[5];
  size_t count = 0;
  for_each(function, words, [&](Kind, uint64_t* word) {
    hosts[count] = pointer(*word);
    if (hosts[count]) std::memcpy(values + count * kRotationStep, hosts[count], bytes);
    *word = scratch->answers() + count++ * kRotationStep;
  });
  for (size_t i = 0; i < count; ++i) {
    if (!hosts[i]) return Outcome::kInvalidValue;
  }
  Outcome outcome = outcome_of(
      runtime_.copy(pointer(scratch->answers()), sizeof values, values, sizeof values, sizeof values, 1, stream, true));
  if (outcome == Outcome::kSuccess) outcome = hand_over(words, scratch);
  if (outcome == Outcome::kSuccess) outcome = fetch(values, scratch->answers(), sizeof values);
  if (outcome != Outcome::kSuccess) return outcome;
  const bool has_parameters = function.shape == Shape::kRotmg;
  for (size_t i = 0; i < count; ++i)
    std::memcpy(hosts[i], values + i * kRotationStep, has_parameters && i == 4 ? 5 * bytes : bytes);
  return Outcome::kSuccess;
}

}  // namespace heddle::client
