#include "client/libraries/cublas_handle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/units.h"

namespace heddle::client {
namespace {

using namespace library::cublas;  // NOLINT(google-build-using-namespace): what this packs

// What NVIDIA documents as the default workspace: 32 MiB from compute capability 9.0 on, 4 MiB before.
constexpr uint64_t kWorkspaceBytes = 32 * kMiB, kSmallWorkspaceBytes = 4 * kMiB;
constexpr uint64_t kAnswerBytes = 4096;
constexpr uint64_t kRotationStep = 128;  // from one value of rotg and rotmg to the next, none of which is larger

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// All of its arguments are values that the call reads or writes.
bool is_rotation(const Function& function) {
  return function.shape == Shape::kRotg || function.shape == Shape::kRotmg || function.shape == Shape::kRotgEx ||
         function.shape == Shape::kRotmgEx;
}
// The parameters that rotmg answers with are five values.
bool has_five(const Function& function, size_t nth_value) {
  return nth_value == 4 && (function.shape == Shape::kRotmg || function.shape == Shape::kRotmgEx);
}

// Calls `body(kind, word, bytes)` for each argument: its first word, and what the value behind it takes, if it is one.
template <class Body>
void for_each(const Function& function, CublasHandle::Words& words, Body&& body) {
  const std::span<const uint64_t> arguments(words.values + Setting::kWords, words.count - Setting::kWords);
  uint64_t* word = words.values + Setting::kWords;
  for (size_t i = 0; i < function.kinds.size(); ++i) {
    const uint32_t bytes = value_bytes(function, arguments, i, words.wide);
    body(function.kinds[i], word, bytes);
    word += words_of(function.kinds[i]);
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
  Outcome outcome = Outcome::kSuccess;
  for_each(function, words, [&](Kind kind, uint64_t* word, uint32_t bytes) {
    if (!is_scalar(kind) && !is_parameters(kind)) return;
    const void* const host = pointer(*word);
    if (!host) outcome = Outcome::kInvalidValue;
    if (bytes == 0) outcome = Outcome::kNotSupported;
    if (host) std::memcpy(word, host, is_scalar(kind) ? bytes : 5 * bytes);
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

Outcome CublasHandle::check(Words& words) {
  const auto setting = Setting{.wide = words.wide}.pack();
  std::copy(setting.begin(), setting.end(), words.values);
  const auto demand =
      library::demand({library::Library::kCublas, static_cast<uint32_t>(words.number), {words.values, words.count}});
  if (demand) return Outcome::kSuccess;
  return demand.error().code == ErrorCode::kNotSupported ? Outcome::kNotSupported : Outcome::kInvalidValue;
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
  int* const info = take_info(function, words);
  if (!info && function.has(Kind::kInfo)) return Outcome::kInvalidValue;
  const Outcome outcome = scalars_on_device ? hand_over(words, its) : call_with_host_values(function, words, its);
  if (info && outcome == Outcome::kSuccess) *info = 0;
  return outcome;
}

// What says on the host which argument was wrong is none of the worker's business: where it is called, none was.
int* CublasHandle::take_info(const Function& function, Words& words) {
  int* info = nullptr;
  for_each(function, words, [&](Kind kind, uint64_t* word, uint32_t) {
    if (kind == Kind::kInfo) info = static_cast<int*>(pointer(std::exchange(*word, 0)));
  });
  return info;
}

Outcome CublasHandle::call_with_host_values(const Function& function, Words& words, const SharedScratch& its) {
  if (is_rotation(function)) return call_rotation(function, words, its);
  if (const Outcome outcome = pack_scalars(function, words); outcome != Outcome::kSuccess) return outcome;
  void* answer = nullptr;
  uint32_t bytes = 0;
  bool answers = false;
  for_each(function, words, [&](Kind kind, uint64_t* word, uint32_t taken) {
    if (!is_answer(kind)) return;
    answer = pointer(*word);
    bytes = taken;
    answers = true;
    *word = its->answers();
  });
  if (answers && !answer) return Outcome::kInvalidValue;
  const Outcome outcome = hand_over(words, its);
  if (outcome != Outcome::kSuccess || !answers) return outcome;
  return fetch(answer, its->answers(), bytes);
}

// The values lie on the host: they are brought to the device and back.
Outcome CublasHandle::call_rotation(const Function& function, Words& words, const SharedScratch& scratch) {
  char values[5 * kRotationStep] = {};
  struct Host {
    void* at;
    size_t bytes;
  };
  Host hosts[5];
  size_t count = 0;
  for_each(function, words, [&](Kind kind, uint64_t* word, uint32_t bytes) {
    if (!is_answer(kind) && kind != Kind::kIn) return;  // a type
    Host& host = hosts[count];
    host = {pointer(*word), has_five(function, count) ? 5 * bytes : bytes};
    if (host.at) std::memcpy(values + count * kRotationStep, host.at, host.bytes);
    *word = scratch->answers() + count++ * kRotationStep;
  });
  if (std::any_of(hosts, hosts + count, [](const Host& host) { return !host.at; })) return Outcome::kInvalidValue;
  Outcome outcome = outcome_of(
      runtime_.copy(pointer(scratch->answers()), sizeof values, values, sizeof values, sizeof values, 1, stream, true));
  if (outcome == Outcome::kSuccess) outcome = hand_over(words, scratch);
  if (outcome == Outcome::kSuccess) outcome = fetch(values, scratch->answers(), sizeof values);
  if (outcome != Outcome::kSuccess) return outcome;
  for (size_t i = 0; i < count; ++i) std::memcpy(hosts[i].at, values + i * kRotationStep, hosts[i].bytes);
  return Outcome::kSuccess;
}

}  // namespace heddle::client
