#include "client/libraries/cufft_plan.h"

#include <cstring>

namespace heddle::client {
namespace {

constexpr int kForward = -1, kInverse = 1;

Outcome outcome_of(int cuda_error) {
  switch (cuda_error) {
    case 0:
      return Outcome::kSuccess;
    case 1:
      return Outcome::kInvalidValue;
    case 2:
      return Outcome::kAllocFailed;
    case 3:
      return Outcome::kSetupFailed;
    case 801:
      return Outcome::kNotSupported;
    default:
      return Outcome::kExecFailed;
  }
}

}  // namespace

FourierPlan::~FourierPlan() {
  if (own_area) (void)runtime.release(own_area);
}

// By way of pinned memory.
Outcome FourierPlan::ask_size(const Transform& of, uint64_t& bytes) {
  bytes = 0;
  if (!runtime.on_gpu()) return Outcome::kSuccess;
  void* pinned;
  if (const int error = runtime.allocate_pinned(&pinned, sizeof(library::cufft::SizeAnswer))) return outcome_of(error);
  Transform asked = of;
  asked.output = reinterpret_cast<uint64_t>(pinned);
  const auto words = asked.pack();
  const int called =
      runtime.call_at_once(static_cast<uint32_t>(library::Library::kCufft), static_cast<uint32_t>(Function::kSize),
                           words.data(), static_cast<uint32_t>(words.size()), !open);
  library::cufft::SizeAnswer answer;
  if (called == 0) std::memcpy(&answer, pinned, sizeof answer);
  (void)runtime.release_pinned(pinned);
  if (called != 0) return outcome_of(called);
  open = true;
  bytes = answer.bytes;
  return static_cast<Outcome>(answer.status);
}

Outcome FourierPlan::make(const Transform& of, size_t* bytes) {
  if (made) return Outcome::kInvalidPlan;
  uint64_t needed;
  if (const Outcome outcome = ask_size(of, needed); outcome != Outcome::kSuccess) return outcome;
  if (allocates && needed > 0) {
    if (const int error = runtime.allocate(&own_area, needed)) return outcome_of(error);
    work_area = own_area;
  }
  transform = of;
  work_bytes = needed;
  made = true;
  if (bytes) *bytes = needed;
  return Outcome::kSuccess;
}

Outcome FourierPlan::execute(const std::shared_ptr<FourierPlan>& shared, Function function, void* input, void* output,
                             int direction) {
  if (!made || library::cufft::function_of(transform.type) != function) return Outcome::kInvalidPlan;
  if (!input || !output || (direction != kForward && direction != kInverse)) return Outcome::kInvalidValue;
  if (work_bytes > 0 && !work_area) return Outcome::kInvalidPlan;
  Transform call = transform;
  call.input = reinterpret_cast<uint64_t>(input);
  call.output = reinterpret_cast<uint64_t>(output);
  call.forward = direction == kForward;
  call.work = reinterpret_cast<uint64_t>(work_area);
  call.work_bytes = work_bytes;
  const auto words = call.pack();
  const heddle_library_keeper keeper = keeper_of(shared);
  const int called = runtime.call(static_cast<uint32_t>(library::Library::kCufft), static_cast<uint32_t>(function),
                                  words.data(), static_cast<uint32_t>(words.size()), stream, !open, &keeper);
  open |= called == 0;
  return outcome_of(called);
}

Outcome FourierPlans::add(const heddle_library_functions& runtime, int& handle) {
  auto plan = std::make_shared<FourierPlan>(runtime);
  const std::lock_guard lock(mutex_);
  handle = next_++;
  plans_.emplace(handle, std::move(plan));
  return Outcome::kSuccess;
}

std::shared_ptr<FourierPlan> FourierPlans::find(int handle) {
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(handle);
  return found == plans_.end() ? nullptr : found->second;
}

Outcome FourierPlans::remove(int handle) {
  std::shared_ptr<FourierPlan> last;  // ends without the lock
  const std::lock_guard lock(mutex_);
  const auto found = plans_.find(handle);
  if (found == plans_.end()) return Outcome::kInvalidPlan;
  last = std::move(found->second);
  plans_.erase(found);
  return Outcome::kSuccess;
}

FourierPlans& fourier_plans() {
  static auto* const all = new FourierPlans;
  return *all;
}

}  // namespace heddle::client
