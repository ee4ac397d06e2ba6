#pragma once

#include "client/copy/places.h"
#include "client/stream_ref.h"

// Records that several calls put into streams: memory fills, calls into the program, waits.
namespace heddle::client {

// Elements of `element_bytes` (1, 2 or 4), each of `value`; the shape's width counts bytes.
struct Fill {
  CopyPlace to;
  CopyShape shape;
  uint32_t value = 0, element_bytes = 1;
};
// The range is checked; returns the record's sequence. cudaErrorInvalidValue for what no worker can reach.
Answer<uint64_t> enqueue_fill(const StreamRef& stream, const Fill& fill);

// `run` is called when the stream stands there, with what the device has to say of its health.
Done enqueue_host_call(const StreamRef& stream, std::function<void(cudaError_t)> run);
// A cudaLaunchHostFunc: not called after an error, as CUDA has it.
Done enqueue_host_function(const StreamRef& stream, cudaHostFn_t function, void* data);

// The stream goes on when record `sequence` of the ring is done; `event` names the event slot where there is one.
Done enqueue_wait(const StreamRef& stream, uint64_t sequence, uint32_t event = 0);
// The stream goes on when `ready`, which the host asks now and then: another ring's work no worker can wait for.
Done enqueue_wait_until(const StreamRef& stream, VirtualDevice::Begin begin, std::function<bool()> ready);

// Side devices (stream/apart.h). What comes next in the side device waits for what the program has given its home's
// blocking streams so far.
Done follow_home(VirtualDevice& side);
// What comes next in the stream of a home waits for its side devices; not in an operation of a task apart.
Done join_side_devices(const StreamRef& stream);

// The stream's last record, which is done when everything is that the stream was given so far.
Answer<uint64_t> enqueue_marker(const StreamRef& stream);

// The last record whose completion means that the stream is idle. The legacy stream also waits for what the blocking
// streams were given before: a marker in it stands behind that.
Answer<uint64_t> last_of(const StreamRef& stream);

}  // namespace heddle::client
