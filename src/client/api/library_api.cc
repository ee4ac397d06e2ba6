// heddle_library_api: the door through which heddle's libcublas and libcurand come in (library_api.h).

#include "client/api/library_api.h"

#include <array>
#include <mutex>

#include "client/api/submit.h"
#include "client/graph/capture.h"
#include "client/stream/enqueue.h"
#include "client/stream/library_calls.h"

namespace heddle::client {

// memory_api.cc, host_memory_api.cc
HEDDLE_EXPORT cudaError_t cudaMalloc(void** pointer, size_t bytes);
HEDDLE_EXPORT cudaError_t cudaFree(void* pointer);
HEDDLE_EXPORT cudaError_t cudaMallocHost(void** pointer, size_t bytes);
HEDDLE_EXPORT cudaError_t cudaFreeHost(void* pointer);

namespace {

// As answer(), but what the libraries did is no last error of the runtime's.
template <class Body>
int quiet_answer(Body&& body) noexcept {
  try {
    const Done done = body();
    if (done) return cudaSuccess;
    if (!done.error().text.empty()) say_once(done.error().text);
    return done.error().code;
  } catch (...) {
    return cudaErrorMemoryAllocation;
  }
}

// The program's own keeper, as the library packed it.
class Keeper final : public LibraryKeeper {
 public:
  Keeper(const heddle_library_keeper& given, void* copy) : given_(given), copy_(copy) {}
  ~Keeper() override { given_.destroy(copy_); }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  void renew(std::span<uint64_t> words) override {
    if (given_.renew) given_.renew(copy_, words.data());
  }

 private:
  const heddle_library_keeper given_;
  void* const copy_;
};

Answer<Work> library_work(VirtualDevice& device, const library::Call& call, bool open,
                          const heddle_library_keeper* keeper) {
  HEDDLE_ANSWER(prepare_library_call(device, call, open));
  LibraryWork work{&device, call.library, call.function, {call.words.begin(), call.words.end()}, nullptr};
  if (!keeper) return work;
  void* const copy = keeper->copy(keeper->object);
  if (!copy) return refuse(cudaErrorMemoryAllocation);
  work.keeper = std::make_shared<Keeper>(*keeper, copy);
  return work;
}

// What a library allocates for itself breaks no capture, as cudaThreadExchangeStreamCaptureMode has it for libraries.
class Relaxed {
 public:
  Relaxed() : before_(captures().exchange_mode(cudaStreamCaptureModeRelaxed)) {}
  ~Relaxed() { (void)captures().exchange_mode(before_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  const cudaStreamCaptureMode before_;
};

bool in_use() {
  return runtime().connected();
}

int call(uint32_t library, uint32_t function, const uint64_t* words, uint32_t count, void* stream, bool open,
         const heddle_library_keeper* keeper) {
  return quiet_answer([&]() -> Done {
    auto resolved = enter_stream(static_cast<cudaStream_t>(stream));
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    const library::Call call{static_cast<library::Library>(library), function, {words, count}};
    return submit(
        *resolved, [&] { return library_work(*resolved->device, call, open, keeper); },
        [&] { return call_library(*resolved, call, open); });
  });
}

uint64_t capture(void* stream) {
  try {
    if (!captures().any()) return 0;
    const auto resolved = resolve_stream(static_cast<cudaStream_t>(stream));
    return resolved ? captures().info(*resolved).id : 0;
  } catch (...) {
    return 0;
  }
}

int allocate(void** pointer, size_t bytes) {
  const Relaxed relaxed;
  return cudaMalloc(pointer, bytes);
}

int release(void* pointer) {
  const Relaxed relaxed;
  return cudaFree(pointer);
}

int copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, void* stream,
              bool blocking) {
  return quiet_answer([&]() -> Done {
    auto resolved = enter_stream(static_cast<cudaStream_t>(stream));
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    HEDDLE_ANSWER(resolved->device->failure());
    auto plan = plan_rows(to, to_pitch, from, from_pitch, width, height, cudaMemcpyDefault);
    if (!plan) return tl::unexpected(std::move(plan).error());
    return submit_copy(*resolved, *plan, blocking ? CopyMode::kBlocking : CopyMode::kAsync);
  });
}

int current_device(int* device, int* capability_major) {
  return quiet_answer([&]() -> Done {
    auto found = runtime().current_device();
    if (!found) return tl::unexpected(std::move(found).error());
    *device = current_device_index();
    *capability_major = static_cast<int>((*found)->model().capability_major);
    return {};
  });
}

void say(const char* text) {
  try {
    say_once(text);
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody hears it
  }
}

bool on_gpu() {
  try {
    const auto device = runtime().current_device();
    return device && (*device)->model().kind == DeviceKind::kCuda;
  } catch (...) {
    return false;
  }
}

// A stream of each device that the program does not know. Never closed.
Answer<StreamRef> own_stream(VirtualDevice& device) {
  static std::mutex mutex;
  static std::array<std::optional<uint32_t>, protocol::kMaxDevices> slots;
  const std::lock_guard lock(mutex);
  auto& slot = slots[device.index()];
  if (!slot) {
    auto opened = device.open_stream(true, 0);
    if (!opened) return tl::unexpected(std::move(opened).error());
    slot = *opened;
  }
  return StreamRef{&device, *slot};
}

int call_at_once(uint32_t library, uint32_t function, const uint64_t* words, uint32_t count, bool open) {
  return quiet_answer([&]() -> Done {
    auto device = runtime().current_device();
    if (!device) return tl::unexpected(std::move(device).error());
    auto stream = own_stream(**device);
    if (!stream) return tl::unexpected(std::move(stream).error());
    HEDDLE_ANSWER(call_library(*stream, {static_cast<library::Library>(library), function, {words, count}}, open));
    auto last = last_of(*stream);
    if (!last) return tl::unexpected(std::move(last).error());
    return (*device)->synchronize_stream(stream->slot, *last);
  });
}

int allocate_pinned(void** pointer, size_t bytes) {
  return cudaMallocHost(pointer, bytes);
}

int release_pinned(void* pointer) {
  return cudaFreeHost(pointer);
}

}  // namespace

HEDDLE_EXPORT const heddle_library_functions* heddle_library_api() {
  static constexpr heddle_library_functions kFunctions{
      kHeddleLibraryVersion, in_use, call,   capture,      allocate,        release,       copy_rows,
      current_device,        say,    on_gpu, call_at_once, allocate_pinned, release_pinned};
  return &kFunctions;
}

}  // namespace heddle::client
