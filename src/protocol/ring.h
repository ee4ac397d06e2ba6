#pragma once

// The op ring: the log through which one session's work reaches one worker.
//
// One memfd for each (session, virtual device), made and sealed by heddled, mapped by the client, by heddled (the
// header alone matters to it) and by whichever worker serves the session now. Layout, in this order:
//   RingHeader | stream table | event table | texture table | print area | report area | record area | bulk area |
//   buffer table
//
// The client appends records; sequence numbers count them from 1 and never restart, so the log outlives workers. The
// worker publishes three watermarks: issued (handed to the device), completed (done, together with everything before),
// committed (never to be run again). Record space may be used again once committed has passed it; so may a payload's
// place in the bulk area, which the client alone gives out (client/device/bulk_area.h), once that of its records has.
// With durability off committed follows completed. Else both are shown at each commit, and completed before it where
// the work would be repeated exactly. Where nothing has to be committed first, the device itself says how far a stream
// is (StreamSlot::device_completed), so that nobody stands between it and a program that waits.
//
// Thread safety: one producer (the client serialises its threads), one consumer. Fields are written by one side only,
// named at each. A consumer trusts nothing here: it copies a record out before it looks at it, and checks every length,
// offset and id, because a tenant can write to all of this memory at any time.

#include <atomic>
#include <cstdint>

#include "core/texture.h"
#include "core/units.h"

namespace heddle::protocol {

inline constexpr uint32_t kRingMagic = 0x52444c48;  // "HLDR"
inline constexpr uint32_t kProtocolVersion = 13;

inline constexpr uint32_t kMaxStreams = 1024;  // stream 0 is the legacy default stream
inline constexpr uint32_t kMaxEvents = 8192;
inline constexpr uint32_t kMaxTextures = 4096;          // texture and surface objects
inline constexpr uint32_t kMaxIdleSegments = 64;        // freed by the program and still mapped
inline constexpr uint64_t kPrintBytes = 16 * kMiB;      // the most that cudaLimitPrintfFifoSize can be
inline constexpr uint64_t kDefaultPrintBytes = kMiB;    // and CUDA's default of it
inline constexpr uint64_t kReportBytes = 64 * kKiB;     // what heddle itself has to say of a program
inline constexpr uint32_t kRecordAlign = 64;            // at least a header, so that a pad always has one
inline constexpr uint32_t kMaxRecordBytes = 36 * 1024;  // 32,764 bytes of kernel parameters at most, and the header

// What heddled says of the (session, virtual device).
enum class Binding : uint32_t {
  kUnbound = 0,  // no task: records wait
  kWaiting,      // a task was announced and waits for a device
  kBound,        // a worker serves the ring
  kFailed,       // no worker will serve it any more; `error` says why
  kAway,         // its task has left its device until the program has work: whoever appends a record says WorkWaits
};

// One futex word with a count of those that sleep on it, so that nobody pays for waking no one.
struct alignas(64) Bell {
  std::atomic<uint32_t> word;
  std::atomic<uint32_t> sleepers;
};

// What a program's compiled tasks (include/heddle/task.h) announced against what it then allocated, since the ring was
// made, in bytes as cudaMalloc was asked for them. To be shown; nothing is decided by it. Written by the client.
struct TaskTotals {
  std::atomic<uint64_t> tasks;
  std::atomic<uint64_t> declared;    // promised by probes
  std::atomic<uint64_t> used;        // of that, allocated
  std::atomic<uint64_t> beside;      // allocated while a task was open and nothing of that size was promised
  std::atomic<uint64_t> extensions;  // segments asked for after their task had begun, whoever compiled the program
};

// Memory that the program has freed and that stays mapped in its worker, to be used again or given back. Client and
// worker take it from each other by compare-and-swap, so that neither waits for the other and no segment is taken
// twice. The client fills a slot or sets `task`, and only then looks at `idle_allowed`; heddled clears `idle_allowed`,
// and only then looks here: one of them sees the other.
struct IdleTable {
  // serial << 2 | flags of a task whose program holds no memory. The client sets it to kOffered and takes it back as 0
  // before it appends a record; the worker that makes it kTaken ends the task without a record.
  std::atomic<uint64_t> task;
  // Numbers of segments that nothing will touch; 0: the slot is empty. A worker that gives one back sets kTaken in it.
  std::atomic<uint64_t> segments[kMaxIdleSegments];

  static constexpr uint64_t kTaskOffered = 1, kTaskTaken = 2, kSegmentTaken = 1ull << 63;
  static constexpr uint64_t offered_task(uint64_t serial) { return serial << 2 | kTaskOffered; }
  static constexpr uint64_t taken_task(uint64_t serial) { return serial << 2 | kTaskTaken; }
};

struct RingHeader {
  // Written once by heddled before anybody else sees the memory.
  uint32_t magic, version;
  uint64_t total_bytes;
  // Offsets from the start.
  uint64_t stream_table, event_table, texture_table, print_area, report_area, record_area, bulk_area, buffer_table;
  uint64_t record_bytes, bulk_bytes;  // sizes, powers of two

  // Written by the client. Positions count bytes since the ring was made; modulo the area's size they are offsets.
  alignas(64) std::atomic<uint64_t> record_tail;  // end of the last complete record
  std::atomic<uint64_t> last_sequence;            // of that record
  std::atomic<uint64_t> print_head, report_head;  // bytes taken of either area
  std::atomic<uint32_t> textures_used;            // slots of the texture table from here on were never used
  // cudaDeviceSetLimit; 0: not set. Part of the journal; a record says from where on stack and heap count.
  std::atomic<uint64_t> stack_bytes, heap_bytes, print_bytes, pending_launches;
  std::atomic<uint32_t> checks;  // 1: kernels' accesses are checked. Set before the first task
  // A record that somebody waits for, or has asked whether it is done: the latest such, or the first that is not
  // committed where it is about that. A thread that waits says it again each time it looks; the worker may make it 0
  // when it has shown the record, and rings.
  std::atomic<uint64_t> wanted;
  // The same, where a stream's `device_completed` is not enough: it is the worker's own words that somebody waits for.
  // The worker looks for ends without a pause while there is one.
  std::atomic<uint64_t> watched;

  alignas(64) TaskTotals task_totals;  // client
  alignas(64) IdleTable idle;          // client and worker

  // Written by the worker. A new worker starts where the control page says, and writes these anew.
  alignas(64) std::atomic<uint64_t> issued, completed, committed;
  std::atomic<uint64_t> record_head;  // records before this position are committed: their space is free
  std::atomic<uint64_t> print_tail;   // print bytes written
  std::atomic<uint64_t> print_lost;   // print bytes that found no space
  std::atomic<uint64_t> report_tail;  // report bytes written
  std::atomic<uint64_t> findings;     // of the checks; some may have found no space in the report area
  std::atomic<uint32_t> holds_back;   // 1: what is done may be shown later, and sooner where it is `wanted`
  std::atomic<uint32_t> fault;        // a CUDA error code, sticky for the session; 0: none
  char fault_text[512];               // valid once `fault` is set

  // Written by heddled.
  alignas(64) std::atomic<uint32_t> binding;  // enum Binding
  std::atomic<uint64_t> task_serial;          // the client's serial of the task that was granted last
  std::atomic<uint32_t> error;                // a CUDA error code; 0: none
  char error_text[512];                       // valid once `error` is set
  std::atomic<uint32_t> idle_allowed;         // 1: nobody waits, so freed memory may stay where it is
  std::atomic<uint64_t> reclaims;             // counts how often the worker was asked to give back what is idle

  Bell to_worker;  // rung by the client
  Bell to_client;  // rung by the worker and by heddled
};

// A stream's live handle: part of the session's journal, since a new worker reads it again.
struct alignas(64) StreamSlot {
  std::atomic<uint32_t> flags;         // client: kStreamLive | kStreamNonBlocking
  std::atomic<int32_t> priority;       // client
  std::atomic<uint64_t> completed;     // worker: sequence of the last record of this stream that is done
  std::atomic<uint64_t> host_reached;  // worker: the stream stands at this kHostCall record
  std::atomic<uint64_t> host_done;     // client: that call has returned
  // The device: sequence of a record of this stream up to which all of its records are done, ahead of `completed` by
  // what the worker needs to see it. Events have no time yet then, and nothing is committed.
  std::atomic<uint64_t> device_completed;
};
inline constexpr uint32_t kStreamLive = 1, kStreamNonBlocking = 2;

// An event: the last kEventRecord that has been reached, and when.
struct EventSlot {
  std::atomic<uint64_t> completed;  // worker: sequence of that record
  std::atomic<uint64_t> time_ns;    // worker: CLOCK_MONOTONIC at which it was reached; written before `completed`
};

// A texture or surface object: part of the journal too. All by the client, which fills a slot before it says so in a
// record (kTexture), and fills it anew only once the record that took the object away (kTextureGone) is committed.
struct alignas(64) TextureSlot {
  std::atomic<uint64_t> handle;  // as kernels name it; 0: the slot holds nothing
  std::atomic<uint64_t> born;    // sequence of the kTexture record; 0: it is not in the ring yet
  std::atomic<uint64_t> gone;    // sequence of the kTextureGone record; 0: the object lives
  Texture texture;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

enum class RecordType : uint32_t {
  kPad = 1,         // skip to the start of the area
  kNeed,            // wait until segment `a` is mapped here
  kLaunch,          // struct LaunchRecord
  kCopy,            // struct CopyRecord
  kFill,            // struct FillRecord
  kEventRecord,     // event slot `a`
  kEventWait,       // until sequence `b` of the ring is done (an event of this ring)
  kHostCall,        // the stream stops until the client says that the call has returned
  kMarker,          // nothing; completes in stream order
  kSymbol,          // struct SymbolRecord: a module variable's address and size
  kFree,            // segment `a`: once everything before is done on all streams it is unmapped and given back
  kTaskEnd,         // task serial `a`: once everything before is done on all streams the worker is done with it
  kPrefetchModule,  // module `a` is loaded now, so that a fault in it shows here
  kTexture,         // launches that follow may name the object of texture slot `a`
  kTextureGone,     // and from here on they do not
  kLimit,           // limit `a` (enum class LimitKind) is `b` for the launches that follow
  kLibraryOpen,     // struct LibraryOpenRecord
  kLibraryCall,     // struct LibraryCallRecord
  kReset,           // the program resets the device: what the worker holds of its modules ends with this task
};

enum class LimitKind : uint64_t { kStackBytes = 1, kHeapBytes, kPendingLaunches };

// Every record starts with this and has a multiple of kRecordAlign bytes.
struct RecordHeader {
  RecordType type;
  uint32_t bytes;  // of the whole record
  uint64_t sequence;
  uint32_t stream;  // index in the stream table
  uint32_t reserved;
  uint64_t a, b;  // as the type says
};
static_assert(sizeof(RecordHeader) <= kRecordAlign);

// A kernel launch. Parameter bytes follow, laid out as the kernel's parameter list says (src/image).
struct LaunchRecord {
  RecordHeader header;
  uint32_t module, kernel;  // journal id of the module; index among its kernels as image::describe orders them
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t parameter_bytes;
  uint32_t cooperative;
  uint32_t reserved;
};

// Where one end of a copy is.
enum class Place : uint32_t {
  kWindow = 1,  // address in the session's window, device or host part
  kBulk = 2,    // position in the bulk area (bytes since the ring was made); rows lie dense there
  kSymbol = 3,  // offset into variable `index` of module `module`
};
struct CopyEnd {
  Place place;
  uint32_t module, index, reserved;
  uint64_t address;       // address, position or offset
  uint64_t pitch, slice;  // bytes from row to row, and from slice to slice; kBulk: ignored
};
struct CopyRecord {
  RecordHeader header;
  CopyEnd to, from;
  uint64_t width, height, depth;  // bytes a row, rows a slice, slices
};

// cudaMemset*: `height` rows of `width` bytes, `pitch` apart, in elements of 1, 2 or 4 bytes.
struct FillRecord {
  RecordHeader header;
  CopyEnd to;
  uint64_t width, height, depth;
  uint32_t value, element_bytes;
  uint64_t reserved;
};

// Writes {address, size} of variable `index` of module `module`, two uint64_t, to bulk position `position`.
struct SymbolRecord {
  RecordHeader header;
  uint32_t module, index;
  uint64_t position;
};

// Library `library` (library::Library) is made ready; what came of it is written to bulk position `position`.
struct LibraryOpenRecord {
  RecordHeader header;
  uint32_t library, reserved;
  uint64_t position;
};
struct LibraryOpened {
  uint32_t cuda_error;  // 0: `version` holds
  uint32_t version;
  char text[504];  // what is wrong
};

// A call of a library, as src/library packs it: `words` words of 8 bytes follow.
struct LibraryCallRecord {
  RecordHeader header;
  uint32_t library, function, words, reserved;
};

}  // namespace heddle::protocol
