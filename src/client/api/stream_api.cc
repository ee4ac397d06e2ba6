// Streams.

#include "client/api/submit.h"
#include "client/context.h"
#include "client/memory/memory_pool.h"
#include "client/stream/stream_attributes.h"

namespace heddle::client {
namespace {

template <class Body>
cudaError_t on_stream(cudaStream_t stream, Body&& body) {
  return answer([&]() -> Done {
    auto resolved = enter_stream(stream);
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    return body(*resolved);
  });
}

Done create(cudaStream_t* stream, unsigned flags, int priority) {
  if (!stream || flags > cudaStreamNonBlocking) return refuse(cudaErrorInvalidValue);
  auto device = runtime().current_device();
  if (!device) return tl::unexpected(std::move(device).error());
  HEDDLE_ANSWER((*device)->failure());
  const int clamped = std::max(kGreatestPriority, std::min(kLeastPriority, priority));
  auto slot = (*device)->open_stream(flags == cudaStreamNonBlocking, clamped);
  if (!slot) return tl::unexpected(std::move(slot).error());
  forget_attributes({*device, *slot});
  *stream = reinterpret_cast<cudaStream_t>((*device)->streams().handle(*slot));
  return {};
}

// Work that was enqueued still runs; the slot is used again when it is done.
Done destroy(cudaStream_t stream, const StreamRef& ref) {
  if (reinterpret_cast<uintptr_t>(stream) <= 2) return refuse(cudaErrorInvalidResourceHandle);
  HEDDLE_ANSWER(captures().stream_ends(ref));
  ref.device->streams().close(ref.slot);
  disown(Owned::kStream, reinterpret_cast<uint64_t>(stream));
  return {};
}

Done query(const StreamRef& ref) {
  HEDDLE_ANSWER(captures().refuse_on(ref));
  HEDDLE_ANSWER(ref.device->failure());
  auto last = last_of(ref);
  if (!last) return tl::unexpected(std::move(last).error());
  if (ref.device->ring().stream_reached(ref.slot, *last)) return {};
  HEDDLE_ANSWER(ref.device->start_pending());  // who asks wants it to happen
  HEDDLE_ANSWER(ref.device->session().look());
  return refuse(cudaErrorNotReady);
}

}  // namespace

HEDDLE_EXPORT cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return answer([&] { return create(stream, 0, 0); });
}

HEDDLE_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return answer([&] { return create(stream, flags, 0); });
}

HEDDLE_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return answer([&] { return create(stream, flags, priority); });
}

HEDDLE_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = kLeastPriority;
  if (greatest) *greatest = kGreatestPriority;
  return cudaSuccess;
}

HEDDLE_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return on_stream(stream, [&](const StreamRef& ref) { return destroy(stream, ref); });
}

HEDDLE_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return on_stream(stream, query);
}

HEDDLE_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return on_stream(stream, [](const StreamRef& ref) -> Done {
    HEDDLE_ANSWER(captures().refuse_on(ref));
    auto last = last_of(ref);
    if (!last) return tl::unexpected(std::move(last).error());
    HEDDLE_ANSWER(ref.device->synchronize_stream(ref.slot, *last));
    memory_pools().synchronized(*ref.device);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!flags) return refuse(cudaErrorInvalidValue);
    *flags = ref.device->streams().state(ref.slot).non_blocking ? cudaStreamNonBlocking : 0;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!priority) return refuse(cudaErrorInvalidValue);
    *priority = ref.device->streams().state(ref.slot).priority;
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!id) return refuse(cudaErrorInvalidValue);
    *id = ref.device->streams().handle(ref.slot);
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!device) return refuse(cudaErrorInvalidValue);
    *device = static_cast<int>(ref.device->index());
    return {};
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!status) return refuse(cudaErrorInvalidValue);
    *status = captures().info(ref).status;
    return {};
  });
}

// Managed memory is visible to every stream already.
HEDDLE_EXPORT cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t, unsigned) {
  return on_stream(stream, [&](const StreamRef&) -> Done {
    const bool managed = runtime().managed_memory().find_anywhere(reinterpret_cast<uint64_t>(pointer)).has_value();
    return managed ? Done{} : refuse(cudaErrorInvalidValue);
  });
}

HEDDLE_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!function) return refuse(cudaErrorInvalidValue);
    return submit(
        ref,
        [&]() -> Answer<Work> {
          return HostWork{function, data};
        },
        [&] { return enqueue_host_function(ref, function, data); });
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                                unsigned flags) {
  return on_stream(stream, [&](const StreamRef& ref) -> Done {
    if (!callback || flags != 0) return refuse(cudaErrorInvalidValue);
    HEDDLE_ANSWER(captures().refuse_on(ref));
    return enqueue_host_call(ref, [=](cudaError_t status) { callback(stream, status, data); });
  });
}

}  // namespace heddle::client
