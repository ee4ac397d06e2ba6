#pragma once

// The device interface: what a worker needs of one GPU, real or software. Two implementations, one conformance suite.
//
// A Context is one worker's hold on one device. All work is ordered by streams and never blocks the caller: an
// operation is handed over with a tag, and comes back as a Completion with that tag once it, and everything before it
// on its stream, is done. Stream 0 is CUDA's legacy default stream: it waits for, and is waited for by, every stream
// that is not kStreamNonBlocking; implementations keep that order, callers need not.
//
// Addresses are addresses of this process: device memory is mapped where the session's window has it, so a kernel's
// pointers, a copy's ends and the bulk area are all just addresses.
//
// Faults: an operation that could not even be handed over returns an Error. One that failed while running completes
// with a CUDA error code; where CUDA's error is sticky (700, 716, 719, 710 ...), everything after it on every stream
// completes with the same code.
//
// Thread safety: one thread issues; one thread (may be another) takes completions; wake() from anywhere.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/device_model.h"
#include "core/fd.h"
#include "core/texture.h"
#include "core/units.h"
#include "library/call.h"

namespace heddle::device {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

using Tag = uint64_t;
// Tags with this bit are of the caller's own operations, which are never reported (Context::report_to).
inline constexpr Tag kUnreportedTag = 1ull << 63;
using StreamIndex = uint32_t;

// Words of 8 bytes in host memory, one for each stream: stream i's at `first` + i * `stride`.
struct ProgressWords {
  uint64_t first = 0, stride = 0;
};

struct Completion {
  Tag tag = 0;
  uint32_t cuda_error = 0;       // 0: done
  std::string text;              // of a fault: kernel, PTX line, address
  TimePoint started{}, ended{};  // on the device: first block to last, first byte to last
  uint64_t overrun_ns = 0;       // by how much the host was later than the model says (software devices)
  // Of a fault: the device has lost the whole context, as against an operation that never reached it.
  bool device_lost = false;
};

// What checks of kernels found: one line, without its end. Called on the context's own threads.
using FindingSink = std::function<void(std::string_view)>;

// A module that is loaded on the device. Owned by its context.
class Module {
 public:
  virtual ~Module() = default;
};
// A kernel of it. Owned by its module.
class Kernel {
 public:
  virtual ~Kernel() = default;
};

struct Variable {
  uint64_t address = 0, bytes = 0;
};

struct LaunchConfig {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::span<const std::byte> parameters;  // copied before launch() returns
};

// One end of a copy: `address` of the first byte, bytes from row to row and from slice to slice.
struct CopyEnd {
  uint64_t address = 0, pitch = 0, slice = 0;
};
struct CopyShape {
  CopyEnd to, from;
  uint64_t width = 0, height = 1, depth = 1;  // bytes a row, rows a slice, slices
};
// Which copy engine it occupies.
enum class CopyDirection { kToDevice, kToHost, kOnDevice, kOnHost };

struct FillShape {
  CopyEnd to;
  uint64_t width = 0, height = 1, depth = 1;  // width in bytes
  uint32_t value = 0, element_bytes = 1;      // 1, 2 or 4
};

// What kernels that are launched from now on may use (cudaDeviceSetLimit).
enum class Limit : uint32_t {
  kStackBytes,       // of local memory per thread, where the compiler cannot tell how much
  kHeapBytes,        // of device malloc; only before the first launch of a kernel that may use it
  kPendingLaunches,  // that kernels have made and that wait; without a meaning where kernels launch none
};

class Context {
 public:
  virtual ~Context() = default;

  // Makes `memory` (a sealed memfd, or on a CUDA device an exported allocation) visible at `address`; both multiples of
  // 2 MiB, inside a window that was given at creation. `host`: pinned host memory of the program, visible to kernels
  // too.
  virtual Status map(uint64_t address, Bytes size, const Fd& memory, bool host) = 0;
  // What is mapped there as device memory lies on the host, until it is unmapped: a device that keeps a pace reaches it
  // over the bus.
  virtual void lies_on_host(uint64_t /*address*/, Bytes /*size*/) {}
  // The caller has made sure that nothing in flight uses it.
  virtual Status unmap(uint64_t address, Bytes size) = 0;
  // How much device memory the context may take for itself, beyond what it is opened with: for copies of arrays that
  // texture and surface objects need (core/texture.h, needs_image()). None at first.
  virtual void set_room(Bytes /*room*/) {}
  // Host memory outside of the window that copies will start from or end at, for as long as the context lives: a device
  // that copies faster where it may pin memory does so at the first of them.
  virtual void pin_later(uint64_t /*address*/, Bytes /*size*/) {}
  // What begins there is not pinned any more, until the next copy: its pages may be given back. The caller has made
  // sure that nothing in flight uses it.
  virtual void unpin(uint64_t /*address*/) {}

  // Loads a fat binary as nvcc embedded it. Its variables get addresses and their initial values.
  virtual Result<Module*> load(std::span<const std::byte> fatbin) = 0;
  // The first lookup of a kernel may need the device, and fails after a fault.
  virtual Result<Kernel*> kernel(Module&, std::string_view name) = 0;
  virtual Result<Variable> variable(Module&, std::string_view name) = 0;

  // A texture or surface object: what is launched from now on may name it by `handle`, which the caller chose. Its
  // lower 32 bits are a number that was not used before: kFirstTextureNumber or more by a multiple of
  // kTextureNumberStep, and larger than those of all objects that were there at an earlier launch. The same object
  // again changes nothing. kInvalidArgument for what makes no sense, kLimitExceeded where there are no more numbers.
  virtual Status set_texture(uint64_t handle, const Texture& texture) = 0;
  // What was launched before keeps it. kNotFound: there is none.
  virtual Status remove_texture(uint64_t handle) = 0;

  // From now on kernels are checked for races on shared memory, reads of what nobody wrote, and accesses to memory that
  // their parameters do not lead to. To be called before anything is mapped or loaded. kNotSupported where the device
  // cannot.
  virtual Status check_kernels(const FindingSink& /*sink*/) {
    return fail(ErrorCode::kNotSupported, "kernels are checked on software devices only");
  }

  // kInvalidArgument: too much, or too late.
  virtual Status set_limit(Limit limit, uint64_t bytes) = 0;

  // Makes a library ready that the context's programs call, and returns its version as the library tells it. kNotFound
  // where it is not installed: the text says what is missing.
  virtual Result<uint32_t> open_library(library::Library) = 0;

  virtual Status create_stream(StreamIndex, bool non_blocking, int priority) = 0;
  virtual Status destroy_stream(StreamIndex) = 0;

  virtual Status launch(StreamIndex, Kernel&, const LaunchConfig&, Tag) = 0;
  virtual Status copy(StreamIndex, CopyDirection, const CopyShape&, Tag) = 0;
  virtual Status fill(StreamIndex, const FillShape&, Tag) = 0;
  // The words are copied before this returns; library::demand() has found nothing wrong with them. Memory that cannot
  // be reached is a fault, as a kernel's would be; so is what the library refuses.
  virtual Status call(StreamIndex, const library::Call&, Tag) = 0;
  // Completes when everything before it on the stream is done.
  virtual Status mark(StreamIndex, Tag) = 0;
  // Later work of the stream starts only after `awaited` (a tag handed over earlier, on any stream) has completed;
  // after a hold only once that was released.
  virtual Status wait(StreamIndex, Tag awaited, Tag) = 0;
  // Completes when the stream arrives there; later work of the stream starts only after release() of the same tag.
  virtual Status hold(StreamIndex, Tag) = 0;
  virtual Status release(Tag) = 0;

  // Nothing more is handed over for now: completions of what was are wanted soon. A device that is asked for them, and
  // asks seldom while there is more to hand over, asks now. False where the ends of some will be noticed only behind
  // those of others: fence() changes that.
  virtual bool flush() { return true; }
  // The same for what was handed over until now, although more follows: somebody waits for the end of this part.
  virtual void fence() {}
  // Tells whether somebody waits for completions of what is under way: the thread that takes them looks for them
  // without a pause then, and without sleeping while there are processors to spare. `reported`: the device reports all
  // ends by itself that somebody may wait for (report_to). Before anything is handed over; called on that thread.
  using IsAwaited = std::function<bool(bool reported)>;
  virtual void awaited_by(const IsAwaited& /*is_awaited*/) {}
  // From now on the device may itself write, to a stream's word, the tag up to which the stream's operations are done,
  // at a flush or a fence, while `reports(true)` was the latest call: ahead of the completion, which follows. A device
  // that cannot do so writes nothing. The words' memory is host memory that the device may pin for as long as the
  // context lives. Before anything is handed over.
  virtual void report_to(ProgressWords /*words*/, Bytes /*size*/) {}
  // Of what is handed over from now on. The thread that issues.
  virtual void reports(bool /*on*/) {}
  // Moves completions to `out`, in the order in which they happened on each stream; sleeps until there is one, wake()
  // was called, or `timeout` (forever where negative) passed. Returns how many.
  virtual size_t completions(std::span<Completion> out, Duration timeout) = 0;
  virtual void wake() = 0;
};

// Where device printf goes; called on the context's own threads.
using PrintSink = std::function<void(std::string_view)>;

struct ContextOptions {
  DeviceModel model;
  uint64_t window_base = 0, window_bytes = 0;  // reserved by the caller already, no memory behind it
  uint64_t device_bytes = 0;                   // the window's first part, for device memory; 0: all of it
  uint32_t host_threads = 1;                   // software: threads that compute blocks
  // Software: of the SMs, how many its blocks may be on, always the same ones; 0: all. What keeps a pace goes by it.
  uint32_t sms = 0;
  uint32_t ordinal = 0;  // CUDA: which of the devices that this process sees
  PrintSink print;
};

// A software device is shared by all processes that map the same `board`: a memfd of board_bytes() zero bytes, made by
// whoever owns the device. It holds the SM slots and copy engines; a holder that dies gives its share back.
Bytes software_board_bytes(const DeviceModel& model);
Result<std::unique_ptr<Context>> open_software_context(const ContextOptions& options, const Fd& board);

// A context on a GPU of this machine. Under MPS where the environment says so (CUDA_MPS_PIPE_DIRECTORY). kNotFound
// where there is no driver; kLimitExceeded where the driver has the window's addresses for itself.
Result<std::unique_ptr<Context>> open_cuda_context(const ContextOptions& options);

}  // namespace heddle::device
