// libcufft.so.12: cuFFT's functions, forwarded to the worker. A plan is kept here; each call says all of it. What
// NVIDIA's library has beyond these (several GPUs, callbacks, half precision) answers CUFFT_NOT_SUPPORTED; the build
// makes those functions out of cufft_exports.txt.

#include <algorithm>

#include "client/libraries/cufft_plan.h"

namespace heddle::client {
namespace {

constexpr int kVersion = 12000;  // whose interface this is
constexpr int kForward = -1, kInverse = 1;

template <class Body>
int answer(Body&& body) noexcept {
  try {
    return static_cast<int>(body());
  } catch (...) {
    return static_cast<int>(Outcome::kAllocFailed);
  }
}

// `body(plan)`, guarded, where the handle is one.
template <class Body>
int on_plan(int handle, Body&& body) noexcept {
  return answer([&] {
    const std::shared_ptr<FourierPlan> plan = fourier_plans().find(handle);
    if (!plan) return Outcome::kInvalidPlan;
    const std::lock_guard lock(plan->mutex);
    return body(plan);
  });
}

// The sizes of a transform of up to three dimensions, the last one last.
template <class Integer>
struct Many {
  int rank;
  const Integer *size, *in_embed;
  Integer in_stride, in_distance;
  const Integer* out_embed;
  Integer out_stride, out_distance;
  int type;
  Integer batch;
};

template <class Integer>
std::array<int64_t, 3> three(const Integer* sizes, int rank) {
  std::array<int64_t, 3> all{1, 1, 1};
  std::copy_n(sizes, rank, all.end() - rank);
  return all;
}

template <class Integer>
library::cufft::Layout layout(const Integer* embed, Integer stride, Integer distance, int rank) {
  if (!embed) return {};
  return {false, three(embed, rank), stride, distance};
}

template <class Integer>
Outcome transform_of(const Many<Integer>& of, Transform& to) {
  if (of.rank < 1 || of.rank > 3 || !of.size) return Outcome::kInvalidSize;
  if (library::cufft::function_of(of.type) == Function::kSize) return Outcome::kInvalidType;
  to.type = of.type;
  to.rank = static_cast<uint32_t>(of.rank);
  to.size = three(of.size, of.rank);
  to.in = layout(of.in_embed, of.in_stride, of.in_distance, of.rank);
  to.out = layout(of.out_embed, of.out_stride, of.out_distance, of.rank);
  to.batch = of.batch;
  if (*std::min_element(to.size.begin(), to.size.end()) < 1 || to.batch < 1) return Outcome::kInvalidSize;
  const auto words = to.pack();
  const auto demand = library::demand({library::Library::kCufft, static_cast<uint32_t>(Function::kSize), words});
  return demand ? Outcome::kSuccess : Outcome::kInvalidValue;
}

template <class Integer>
int make_plan(int handle, const Many<Integer>& of, size_t* work_bytes) noexcept {
  return on_plan(handle, [&](const auto& plan) {
    Transform transform;
    const Outcome outcome = transform_of(of, transform);
    return outcome == Outcome::kSuccess ? plan->make(transform, work_bytes) : outcome;
  });
}

int create(int* handle) noexcept {
  return answer([&] {
    if (!handle) return Outcome::kInvalidValue;
    const heddle_library_functions* const runtime = library_runtime();
    int device, capability;
    if (!runtime || runtime->current_device(&device, &capability) != 0) return Outcome::kSetupFailed;
    return fourier_plans().add(*runtime, *handle);
  });
}

// cufftPlanMany and its kin: a handle that is made and planned at once; none where that fails.
template <class Integer>
int plan(int* handle, const Many<Integer>& of) noexcept {
  int made;
  if (const int outcome = handle ? create(&made) : static_cast<int>(Outcome::kInvalidValue)) return outcome;
  if (const int outcome = make_plan(made, of, nullptr)) {
    (void)answer([&] { return fourier_plans().remove(made); });
    return outcome;
  }
  *handle = made;
  return 0;
}

// What a plan would need that is not made.
template <class Integer>
int size_of(const Many<Integer>& of, size_t* work_bytes) noexcept {
  return answer([&] {
    if (!work_bytes) return Outcome::kInvalidValue;
    Transform transform;
    if (const Outcome outcome = transform_of(of, transform); outcome != Outcome::kSuccess) return outcome;
    const heddle_library_functions* const runtime = library_runtime();
    if (!runtime) return Outcome::kSetupFailed;
    uint64_t bytes = 0;
    const Outcome outcome = FourierPlan(*runtime).ask_size(transform, bytes);
    *work_bytes = bytes;
    return outcome;
  });
}

// Sizes as the simple functions have them.
struct Box {
  int size[3];
  int rank;
  Many<int> of(int type, int batch) const { return {rank, size, nullptr, 1, 0, nullptr, 1, 0, type, batch}; }
};

// cudaDataType of both sides and of what is calculated in: those that are types of cuFFT, too. 0: none.
int type_of_sides(int in, int out, int executed) {
  constexpr int kF32 = 0, kF64 = 1, kC32 = 4, kC64 = 5;
  const bool wide = executed == kC64;
  if (!wide && executed != kC32) return 0;
  const int real = wide ? kF64 : kF32;
  if (in == executed && out == executed) return library::cufft::type_of(wide ? Function::kZ2Z : Function::kC2C);
  if (in == real && out == executed) return library::cufft::type_of(wide ? Function::kD2Z : Function::kR2C);
  if (in == executed && out == real) return library::cufft::type_of(wide ? Function::kZ2D : Function::kC2R);
  return 0;
}
int refuse_types() {
  say_unsupported("cuFFT of other types than single and double precision");
  return static_cast<int>(Outcome::kNotSupported);
}

int execute(int handle, Function function, void* input, void* output, int direction = kForward) noexcept {
  return on_plan(handle, [&](const auto& plan) { return plan->execute(plan, function, input, output, direction); });
}

}  // namespace

// ---- Plans ----

HEDDLE_LIBRARY_EXPORT int cufftCreate(int* handle) {
  return create(handle);
}

HEDDLE_LIBRARY_EXPORT int cufftDestroy(int handle) {
  return answer([&] { return fourier_plans().remove(handle); });
}

HEDDLE_LIBRARY_EXPORT int cufftPlan1d(int* handle, int x, int type, int batch) {
  return plan(handle, Box{{x}, 1}.of(type, batch));
}

HEDDLE_LIBRARY_EXPORT int cufftPlan2d(int* handle, int x, int y, int type) {
  return plan(handle, Box{{x, y}, 2}.of(type, 1));
}

HEDDLE_LIBRARY_EXPORT int cufftPlan3d(int* handle, int x, int y, int z, int type) {
  return plan(handle, Box{{x, y, z}, 3}.of(type, 1));
}

HEDDLE_LIBRARY_EXPORT int cufftPlanMany(int* handle, int rank, int* size, int* in_embed, int in_stride, int in_distance,
                                        int* out_embed, int out_stride, int out_distance, int type, int batch) {
  return plan<int>(handle,
                   {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch});
}

HEDDLE_LIBRARY_EXPORT int cufftMakePlan1d(int handle, int x, int type, int batch, size_t* work_bytes) {
  return make_plan(handle, Box{{x}, 1}.of(type, batch), work_bytes);
}

HEDDLE_LIBRARY_EXPORT int cufftMakePlan2d(int handle, int x, int y, int type, size_t* work_bytes) {
  return make_plan(handle, Box{{x, y}, 2}.of(type, 1), work_bytes);
}

HEDDLE_LIBRARY_EXPORT int cufftMakePlan3d(int handle, int x, int y, int z, int type, size_t* work_bytes) {
  return make_plan(handle, Box{{x, y, z}, 3}.of(type, 1), work_bytes);
}

HEDDLE_LIBRARY_EXPORT int cufftMakePlanMany(int handle, int rank, int* size, int* in_embed, int in_stride,
                                            int in_distance, int* out_embed, int out_stride, int out_distance, int type,
                                            int batch, size_t* work_bytes) {
  return make_plan<int>(
      handle, {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch},
      work_bytes);
}

HEDDLE_LIBRARY_EXPORT int cufftMakePlanMany64(int handle, int rank, long long* size, long long* in_embed,
                                              long long in_stride, long long in_distance, long long* out_embed,
                                              long long out_stride, long long out_distance, int type, long long batch,
                                              size_t* work_bytes) {
  return make_plan<long long>(
      handle, {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch},
      work_bytes);
}

// ---- What work areas take ----

HEDDLE_LIBRARY_EXPORT int cufftGetSize(int handle, size_t* work_bytes) {
  return on_plan(handle, [&](const auto& plan) {
    if (!work_bytes) return Outcome::kInvalidValue;
    if (!plan->made) return Outcome::kInvalidPlan;
    *work_bytes = plan->work_bytes;
    return Outcome::kSuccess;
  });
}

// As cuFFT's estimates, and as exact as its sizes: both are what the plan would take.
// NOLINTBEGIN(cppcoreguidelines-macro-usage,bugprone-macro-parentheses): `first` is a parameter, or nothing.
#define HEDDLE_SIZES(Name, first)                                                                                      \
  HEDDLE_LIBRARY_EXPORT int cufft##Name##1d(first int x, int type, int batch, size_t* work_bytes) {                    \
    return size_of(Box{{x}, 1}.of(type, batch), work_bytes);                                                           \
  }                                                                                                                    \
  HEDDLE_LIBRARY_EXPORT int cufft##Name##2d(first int x, int y, int type, size_t* work_bytes) {                        \
    return size_of(Box{{x, y}, 2}.of(type, 1), work_bytes);                                                            \
  }                                                                                                                    \
  HEDDLE_LIBRARY_EXPORT int cufft##Name##3d(first int x, int y, int z, int type, size_t* work_bytes) {                 \
    return size_of(Box{{x, y, z}, 3}.of(type, 1), work_bytes);                                                         \
  }                                                                                                                    \
  HEDDLE_LIBRARY_EXPORT int cufft##Name##Many(first int rank, int* size, int* in_embed, int in_stride,                 \
                                              int in_distance, int* out_embed, int out_stride, int out_distance,       \
                                              int type, int batch, size_t* work_bytes) {                               \
    return size_of<int>(                                                                                               \
        {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch}, work_bytes); \
  }
#define HEDDLE_HANDLE int,
#define HEDDLE_NO_HANDLE
HEDDLE_SIZES(GetSize, HEDDLE_HANDLE)
HEDDLE_SIZES(Estimate, HEDDLE_NO_HANDLE)
// NOLINTEND(cppcoreguidelines-macro-usage,bugprone-macro-parentheses)

HEDDLE_LIBRARY_EXPORT int cufftGetSizeMany64(int, int rank, long long* size, long long* in_embed, long long in_stride,
                                             long long in_distance, long long* out_embed, long long out_stride,
                                             long long out_distance, int type, long long batch, size_t* work_bytes) {
  return size_of<long long>(
      {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch}, work_bytes);
}

// ---- Settings ----

HEDDLE_LIBRARY_EXPORT int cufftSetStream(int handle, void* stream) {
  return on_plan(handle, [&](const auto& plan) {
    plan->stream = stream;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cufftSetAutoAllocation(int handle, int allocates) {
  return on_plan(handle, [&](const auto& plan) {
    if (plan->made) return Outcome::kInvalidPlan;
    plan->allocates = allocates != 0;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cufftSetWorkArea(int handle, void* area) {
  return on_plan(handle, [&](const auto& plan) {
    plan->work_area = area;
    return Outcome::kSuccess;
  });
}

HEDDLE_LIBRARY_EXPORT int cufftGetVersion(int* version) {
  if (!version) return static_cast<int>(Outcome::kInvalidValue);
  *version = kVersion;
  return 0;
}

HEDDLE_LIBRARY_EXPORT int cufftGetProperty(int property, int* value) {
  constexpr int kParts[] = {kVersion / 1000, kVersion / 100 % 10, kVersion % 100};
  if (!value || property < 0 || property > 2) return static_cast<int>(Outcome::kInvalidValue);
  *value = kParts[property];
  return 0;
}

// ---- Transforms ----

HEDDLE_LIBRARY_EXPORT int cufftExecC2C(int handle, void* input, void* output, int direction) {
  return execute(handle, Function::kC2C, input, output, direction);
}

HEDDLE_LIBRARY_EXPORT int cufftExecZ2Z(int handle, void* input, void* output, int direction) {
  return execute(handle, Function::kZ2Z, input, output, direction);
}

HEDDLE_LIBRARY_EXPORT int cufftExecR2C(int handle, void* input, void* output) {
  return execute(handle, Function::kR2C, input, output);
}

HEDDLE_LIBRARY_EXPORT int cufftExecD2Z(int handle, void* input, void* output) {
  return execute(handle, Function::kD2Z, input, output);
}

HEDDLE_LIBRARY_EXPORT int cufftExecC2R(int handle, void* input, void* output) {
  return execute(handle, Function::kC2R, input, output, kInverse);
}

HEDDLE_LIBRARY_EXPORT int cufftExecZ2D(int handle, void* input, void* output) {
  return execute(handle, Function::kZ2D, input, output, kInverse);
}

// ---- The same by their types' names ----

HEDDLE_LIBRARY_EXPORT int cufftXtMakePlanMany(int handle, int rank, long long* size, long long* in_embed,
                                              long long in_stride, long long in_distance, int in_type,
                                              long long* out_embed, long long out_stride, long long out_distance,
                                              int out_type, long long batch, size_t* work_bytes, int executed_type) {
  const int type = type_of_sides(in_type, out_type, executed_type);
  if (type == 0) return refuse_types();
  return make_plan<long long>(
      handle, {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch},
      work_bytes);
}

HEDDLE_LIBRARY_EXPORT int cufftXtGetSizeMany(int, int rank, long long* size, long long* in_embed, long long in_stride,
                                             long long in_distance, int in_type, long long* out_embed,
                                             long long out_stride, long long out_distance, int out_type,
                                             long long batch, size_t* work_bytes, int executed_type) {
  const int type = type_of_sides(in_type, out_type, executed_type);
  if (type == 0) return refuse_types();
  return size_of<long long>(
      {rank, size, in_embed, in_stride, in_distance, out_embed, out_stride, out_distance, type, batch}, work_bytes);
}

// The direction of transforms from and to real numbers is theirs.
HEDDLE_LIBRARY_EXPORT int cufftXtExec(int handle, void* input, void* output, int direction) {
  return on_plan(handle, [&](const auto& plan) {
    return plan->execute(plan, library::cufft::function_of(plan->transform.type), input, output, direction);
  });
}

}  // namespace heddle::client
