#include "device/cuda/fourier_plans.h"

#include <cstring>

#include "device/cuda/library_function.h"

namespace heddle::cuda {
namespace {

namespace cufft = library::cufft;
using cufft::Function;
using cufft::Transform;

constexpr int kForward = -1, kInverse = 1;
using Long = long long;  // NOLINT(google-runtime-int): cuFFT's own

void* address(uint64_t word) {
  return reinterpret_cast<void*>(word);  // NOLINT(performance-no-int-to-ptr)
}

Transform what_makes_the_plan(Transform transform) {
  transform.forward = true;
  transform.input = transform.output = transform.work = transform.work_bytes = 0;
  return transform;
}

// cuFFT's array of sizes: the last `rank` of them; null for a basic layout.
struct Sizes {
  Long values[3];
  Sizes(const std::array<int64_t, 3>& of, uint32_t rank) {
    for (uint32_t i = 0; i < rank; ++i) values[i] = of[3 - rank + i];
  }
};

int make(void* library, int* handle, const Transform& of, uint64_t* work_bytes) {
  Sizes size(of.size, of.rank), in(of.in.embed, of.rank), out(of.out.embed, of.rank);
  if (const int status = invoke(library, "cufftCreate", handle)) return status;
  int status = invoke(library, "cufftSetAutoAllocation", *handle, 0);
  size_t bytes = 0;
  if (status == 0)
    status = invoke(library, "cufftMakePlanMany64", *handle, static_cast<int>(of.rank), size.values,
                    of.in.basic ? nullptr : in.values, Long{of.in.stride}, Long{of.in.distance},
                    of.out.basic ? nullptr : out.values, Long{of.out.stride}, Long{of.out.distance}, of.type,
                    Long{of.batch}, &bytes);
  if (status != 0) (void)invoke(library, "cufftDestroy", *handle);
  *work_bytes = bytes;
  return status;
}

}  // namespace

Status FourierPlans::call(void* library, const library::Call& call, CUstream stream) {
  const auto transform = Transform::unpack(call.words);
  if (!transform) return tl::unexpected(transform.error());
  const auto function = static_cast<Function>(call.function);
  if (function != Function::kSize) return execute(library, function, *transform, stream);
  tell_size(library, *transform);
  return {};
}

std::optional<library::Operand> FourierPlans::written_on_host(const library::Call& call) {
  if (static_cast<Function>(call.function) != Function::kSize) return std::nullopt;
  const auto transform = Transform::unpack(call.words);
  if (!transform) return std::nullopt;
  return library::Operand{transform->output, sizeof(cufft::SizeAnswer), true, 0};
}

Result<FourierPlans::Plan*> FourierPlans::plan_of(void* library, const Transform& transform) {
  const Transform wanted = what_makes_the_plan(transform);
  for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
    if (plan->transform.pack() != wanted.pack()) continue;
    plans_.splice(plans_.begin(), plans_, plan);
    return &plans_.front();
  }
  Plan made{wanted, 0, 0};
  refused_ = make(library, &made.handle, wanted, &made.work_bytes);
  HEDDLE_TRY(check("cufftMakePlanMany64", refused_));
  if (plans_.size() == kMost) {
    (void)invoke(library, "cufftDestroy", plans_.back().handle);
    plans_.pop_back();
  }
  plans_.push_front(made);
  return &plans_.front();
}

void FourierPlans::tell_size(void* library, const Transform& transform) {
  const auto plan = plan_of(library, transform);
  cufft::SizeAnswer answer;
  if (plan) answer.bytes = (*plan)->work_bytes;
  if (!plan) answer.status = refused_;
  std::memcpy(address(transform.output), &answer, sizeof answer);
}

Status FourierPlans::execute(void* library, Function function, const Transform& transform, CUstream stream) {
  const auto plan = plan_of(library, transform);
  if (!plan) return tl::unexpected(plan.error());
  const int handle = (*plan)->handle;
  const char* const name = cufft::name_of(static_cast<uint32_t>(function));
  if (transform.work_bytes < (*plan)->work_bytes)
    return fail(ErrorCode::kInvalidArgument, "%s: a work area of %llu bytes, the plan needs %llu", name,
                static_cast<unsigned long long>(transform.work_bytes),
                static_cast<unsigned long long>((*plan)->work_bytes));
  HEDDLE_TRY(check("cufftSetStream", invoke(library, "cufftSetStream", handle, stream)));
  if ((*plan)->work_bytes > 0)
    HEDDLE_TRY(check("cufftSetWorkArea", invoke(library, "cufftSetWorkArea", handle, address(transform.work))));
  void *const in = address(transform.input), *const out = address(transform.output);
  if (function != Function::kC2C && function != Function::kZ2Z)
    return check(name, invoke(library, name, handle, in, out));
  return check(name, invoke(library, name, handle, in, out, transform.forward ? kForward : kInverse));
}

}  // namespace heddle::cuda
