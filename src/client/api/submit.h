#pragma once

#include "client/copy/copy.h"
#include "client/copy/copy_plan.h"
#include "client/graph/capture.h"
#include "client/stream/enqueue.h"

// How calls that name a stream come into it, whatever is being captured and wherever its device's tasks run:
//
//   enter_stream()   the stream that the handle means; not the legacy one while a blocking stream captures; where its
//                    device has side devices, what comes next in it waits for them (stream/apart.h)
//   submit()         a node of the graph where the stream captures, else records of the ring
namespace heddle::client {

// What enter_stream() does where there are captures or side devices.
Done admit(const StreamRef& stream);

// cudaErrorStreamCaptureImplicit for the legacy stream beside blocking ones that capture; else resolve_stream()'s
// codes.
inline Answer<StreamRef> enter_stream(cudaStream_t stream) {
  auto found = resolve_stream(stream);
  if (found && (captures().any() || found->device->side_devices().any())) [[unlikely]]
    HEDDLE_ANSWER(admit(*found));
  return found;
}

// `make()` gives the work of a node, `enqueue()` writes the records.
template <class Make, class Enqueue>
Done submit(const StreamRef& stream, Make&& make, Enqueue&& enqueue) {
  if (captures().any()) [[unlikely]] {
    const auto captured = captures().holds(stream);
    if (!captured) return tl::unexpected(captured.error());
    if (*captured) {
      Answer<Work> work = make();
      if (!work) return tl::unexpected(std::move(work).error());
      captures().add(stream, std::move(*work));
      return {};
    }
  }
  return enqueue();
}

// A blocking copy waits, which no capture survives.
Done submit_copy(const StreamRef& stream, const CopyPlan& plan, CopyMode mode);
// Asynchronous on device memory, as in CUDA; host memory is filled when the call returns.
Done submit_fill(const StreamRef& stream, const Fill& fill);

}  // namespace heddle::client
