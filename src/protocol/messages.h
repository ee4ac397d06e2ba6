#pragma once

// What crosses heddled's sockets. All are SOCK_SEQPACKET of the Unix domain: one message a packet, descriptors beside
// it. A message is a MessageHeader and one of the structs below, plain data, sent and received whole (socket.h checks
// the size against the type before anyone sees the body). Who may send which is said at each.
//
// A program's requests that have an answer begin with a number, which the answer repeats: a program's threads ask side
// by side, and heddled answers in any order. Numbers rise from request to request over a session's life, connections
// included, so that an answer is never taken for another request's. heddled ends the connection of a program whose
// number is 0 or does not rise; a program drops a heddled that answers a number which nobody asked for, or twice.

#include <cstdint>

#include "core/device_model.h"
#include "protocol/ring.h"

namespace heddle::protocol {

enum class MessageType : uint32_t {
  // client -> heddled, on the control socket
  kHello = 1,
  kOpenDevice,
  kDeclareModule,
  kDeclareSegment,
  kBeginTask,
  kComputeNeed,
  kMemoryInfo,
  kBeginApart,
  kCopyAcross,
  kWorkWaits,
  // heddled -> client
  kWelcome = 100,
  kDeviceOpened,
  kSegmentAnswer,
  kMemoryAnswer,
  kApartAnswer,
  kCopyAnswer,
  kRefused,  // instead of any of these
  // heddled -> worker, on the worker's socket
  kStartWorker = 200,
  kBindSession,
  kModule,
  kMapSegment,
  kProceed,
  kNextTask,
  kDeviceFault,
  kQuit,
  kSuspend,
  // worker -> heddled
  kWorkerReady = 300,
  kSegmentFreed,
  kTaskEnded,
  kWorkerFault,
  kLeaseReturned,
  kBacklog,
  kDrained,
  kSuspended,
  kNeedsApart,
  // heddle (the command) <-> heddled: JSON
  kCommand = 400,
  kReply,
  // heddled <-> vault
  kDeposit = 500,
  kWithdraw,
  kRestored,
  kAllRestored,
  kShutdown,
  // heddled <-> keeper
  kMakeMemory = 600,
  kMemoryMade,
  kMemoryLeft,
  kCopyMemory,
  kCancelCopy,
  kMemoryCopied,
  kTakeBack,
  kKeepAtMost,
  kUnmapMemory,
};

struct MessageHeader {
  MessageType type;
  uint32_t bytes;  // of the whole message
};

// First message of a client. `resume_session` and `resume_secret` are 0 but after heddled was restarted.
struct Hello {
  static constexpr MessageType kType = MessageType::kHello;
  uint32_t magic = kRingMagic, version = kProtocolVersion;
  uint64_t job = 0, job_secret = 0;  // from HEDDLE_JOB; 0: the session is a job of its own
  uint64_t resume_session = 0, resume_secret = 0;
  char program[64] = {};
};

inline constexpr uint32_t kMaxDevices = 16;     // virtual devices of one session, side devices among them
inline constexpr uint32_t kMaxSideDevices = 3;  // of those, at most so many that the program does not see
inline constexpr uint32_t kMaxWindows = 4;

// A range of addresses that a session's buffers live in: device part first, host part (pinned memory) behind it.
struct Window {
  uint64_t base = 0, device_bytes = 0, host_bytes = 0;
  bool holds(uint64_t address) const { return address - base < device_bytes + host_bytes; }
  bool holds_on_host(uint64_t address) const { return address - base - device_bytes < host_bytes; }
};

struct Welcome {
  static constexpr MessageType kType = MessageType::kWelcome;
  uint32_t version = kProtocolVersion;
  uint32_t grants_at_malloc = 0;  // the placement policy is memory-oblivious (cg): cudaMalloc asks and gets the answer
  uint64_t session = 0, secret = 0;
  uint64_t budget_bytes = 0;  // live device memory that the session may hold on one virtual device
  uint32_t device_count = 0, window_count = 0;
  // Virtual devices behind those: tasks of one device that share nothing may run there (BeginApart).
  uint32_t side_device_count = 0;
  uint32_t segment_limit = 0;      // segments that the session may have at once, pinned memory's among them
  uint32_t managed_on_device = 0;  // managed memory lives on the device while kernels run; else it stays on the host
  uint32_t reserved = 0;
  Window windows[kMaxWindows];  // in order of preference; the client takes the first that it can reserve
  DeviceModel devices[kMaxDevices];
};

// Asks for the ring of one virtual device. The first such request fixes the session's window.
struct OpenDevice {
  static constexpr MessageType kType = MessageType::kOpenDevice;
  uint64_t request = 0;
  uint32_t virtual_device = 0, reserved = 0;
  Window window;
};
// Descriptor: the ring's memory.
struct DeviceOpened {
  static constexpr MessageType kType = MessageType::kDeviceOpened;
  uint64_t request = 0;
};

// One program module joins the session's journal; every worker of the session gets it. Descriptor: a sealed memfd with
// one fat binary as nvcc embedded it. Ids count from 1, without gaps. heddled -> worker: the same struct as kModule.
struct DeclareModule {
  static constexpr MessageType kType = MessageType::kDeclareModule;
  uint32_t module = 0, reserved = 0;
  uint64_t bytes = 0;
};
struct Module : DeclareModule {
  static constexpr MessageType kType = MessageType::kModule;
};

// Room is device memory that the worker takes for itself, for what cannot lie in segments: it counts as the task's,
// and has addresses, but nothing is ever mapped there. Driver is the same of what the device's driver takes by itself.
enum class SegmentKind : uint32_t { kDevice = 1, kHost = 2, kRoom = 3, kDriver = 4 };

// One piece of memory at a fixed address of the window. Numbers count from 1 over all virtual devices of the session.
// A device segment is answered if `request` is not 0; before kBeginTask it joins the task's needs, after it it is an
// extension. A host segment (pinned memory) is always answered, with its descriptor, but for the end of one.
struct DeclareSegment {
  static constexpr MessageType kType = MessageType::kDeclareSegment;
  uint64_t request = 0;
  uint64_t number = 0, address = 0, bytes = 0;
  SegmentKind kind = SegmentKind::kDevice;
  uint32_t virtual_device = 0, release = 0, reserved = 0;  // release: gives a host segment back instead
};
struct SegmentAnswer {
  static constexpr MessageType kType = MessageType::kSegmentAnswer;
  uint64_t request = 0;
  uint32_t cuda_error = 0, reserved = 0;
  char text[256] = {};
};

struct ComputeNeed {
  static constexpr MessageType kType = MessageType::kComputeNeed;
  uint32_t virtual_device = 0, threads_per_block = 0;
  uint64_t blocks = 0;
  uint32_t registers_per_thread = 0, shared_bytes_per_block = 0;
};

// The segments declared since the last task ended, and `need`, are to be placed. `serial` counts the tasks of this
// virtual device from 1. No answer: RingHeader::binding and task_serial tell.
struct BeginTask {
  static constexpr MessageType kType = MessageType::kBeginTask;
  uint64_t serial = 0;
  ComputeNeed need;
};

// A record was appended to the ring of a task that is away (Binding::kAway): the task wants a device again. No answer.
// heddled looks into the ring itself when it makes a task be away, and when a program connects again, so that a message
// that is lost with heddled need not be repeated.
struct WorkWaits {
  static constexpr MessageType kType = MessageType::kWorkWaits;
  uint32_t virtual_device = 0, reserved = 0;
};

// Two tasks of one session, to be granted at once and on two devices, or not at all: then heddled forgets what was
// declared for both, and nothing has happened. `first.serial` is 0 where the first runs already.
struct BeginApart {
  static constexpr MessageType kType = MessageType::kBeginApart;
  uint64_t request = 0;
  BeginTask first, second;
};
struct ApartAnswer {
  static constexpr MessageType kType = MessageType::kApartAnswer;
  uint64_t request = 0;
  uint32_t granted = 0, reserved = 0;
};

// One end of a copy between two pieces of device memory; pitch and slice as in CopyEnd (ring.h).
struct PeerEnd {
  uint64_t address = 0, pitch = 0, slice = 0;
};
// From one virtual device's memory into another's, without the program's process in between. Both ends lie inside one
// segment each. All work on both has to be done before: heddled knows nothing of streams. Asked for again after a
// restart of heddled: a copy may be done twice.
struct CopyAcross {
  static constexpr MessageType kType = MessageType::kCopyAcross;
  uint64_t request = 0;
  PeerEnd to, from;
  uint64_t width = 0, height = 0, depth = 0;  // bytes a row, rows a slice, slices
};
struct CopyAnswer {
  static constexpr MessageType kType = MessageType::kCopyAnswer;
  uint64_t request = 0;
  uint32_t done = 0, reserved = 0;  // 0: nobody could, as `text` says, and any part of it may have been done
  char text[256] = {};
};

struct MemoryInfo {
  static constexpr MessageType kType = MessageType::kMemoryInfo;
  uint64_t request = 0;
  uint32_t virtual_device = 0, reserved = 0;
};
// What this virtual device holds its client knows best: heddled hears of frees later. `others_bytes` is what else
// counts against the job's budget; 0 where the job has none of its own.
struct MemoryAnswer {
  static constexpr MessageType kType = MessageType::kMemoryAnswer;
  uint64_t request = 0;
  uint64_t budget_bytes = 0, others_bytes = 0;
};

// Instead of a request's answer. Request 0: of Hello, or of the whole connection, which heddled then ends.
struct Refused {
  static constexpr MessageType kType = MessageType::kRefused;
  uint64_t request = 0;
  char text[512] = {};
};

// heddled -> worker, first message. Descriptor: the software device's shared board (none for a CUDA device).
struct StartWorker {
  static constexpr MessageType kType = MessageType::kStartWorker;
  uint32_t version = kProtocolVersion, device = 0;
  uint64_t worker = 0, secret = 0;  // to reconnect with
  DeviceModel model;
  uint32_t host_threads = 1;  // for a software device: threads that may compute blocks
  uint32_t window_count = 0;
  // What the device reports as a fault may be another client's (MPS).
  uint32_t shared_faults = 0;
  // Another process that loads the same modules has their variables at the same addresses.
  uint32_t variables_stay = 0;
  // Of a software device's SMs, how many the worker's blocks may be on; 0: all.
  uint32_t sms = 0;
  // It hands nothing over that could not be run again, and asks to be left instead (NeedsApart).
  uint32_t guarded = 0;
  Window windows[kMaxWindows];  // the worker reserves the first that it can, ahead of any session
};
// Exit status of a worker whose device takes no new client just now: another one may be luckier.
inline constexpr int kDeviceRefuses = 3;
// worker -> heddled: warm. After a restart of heddled also what it serves, and what it has mapped.
struct WorkerReady {
  static constexpr MessageType kType = MessageType::kWorkerReady;
  uint32_t version = kProtocolVersion, device = 0;
  uint64_t worker = 0, secret = 0;
  Window window;
  uint64_t session = 0, task_serial = 0;  // 0: warm, unbound
  uint32_t virtual_device = 0, reserved = 0;
};
// Descriptors: the ring of `virtual_device`, and its control page. Modules and segments follow, each as a message of
// its own, and Proceed behind the last one of the grant.
struct BindSession {
  static constexpr MessageType kType = MessageType::kBindSession;
  uint64_t session = 0, task_serial = 0;
  Window window;
  uint32_t virtual_device = 0, reserved = 0;
};
// Descriptor: the memory.
struct MapSegment {
  static constexpr MessageType kType = MessageType::kMapSegment;
  uint64_t number = 0, address = 0, bytes = 0;
  SegmentKind kind = SegmentKind::kDevice;
  uint32_t release = 0;  // unmap it instead (a host segment that the program gave back)
  // Of a device segment: its memory is this machine's, which the device reaches more slowly.
  uint32_t on_host = 0, reserved = 0;
};
// All memory of the grant has been sent: the worker may take records.
struct Proceed {
  static constexpr MessageType kType = MessageType::kProceed;
  uint64_t reserved = 0;
};
// To a worker whose task has ended: it goes on with the session's next one. It has the modules and the host segments;
// the device segments follow, and `Proceed`.
struct NextTask {
  static constexpr MessageType kType = MessageType::kNextTask;
  uint64_t task_serial = 0;
};
// The session's device work has failed: the worker shows the fault that it holds back, or this one where it has none.
struct DeviceFault {
  static constexpr MessageType kType = MessageType::kDeviceFault;
  uint32_t cuda_error = 0, reserved = 0;
  char text[256] = {};
};
// To the worker that serves the task with that serial: it takes no more records, ends what it has taken, saves the
// variables, unmaps the task's device memory, and says Suspended. heddled then ends it, and another will go on in its
// place.
struct Suspend {
  static constexpr MessageType kType = MessageType::kSuspend;
  uint64_t serial = 0;
};
struct Quit {
  static constexpr MessageType kType = MessageType::kQuit;
  uint64_t reserved = 0;
};

// Number 0 is no segment's: all that was idle when heddled last asked for it (RingHeader::reclaims) has been given
// back.
struct SegmentFreed {
  static constexpr MessageType kType = MessageType::kSegmentFreed;
  uint64_t number = 0;
};
struct TaskEnded {
  static constexpr MessageType kType = MessageType::kTaskEnded;
  uint64_t serial = 0;
  uint32_t reset = 0;     // the program has reset the device: the next task takes a fresh worker
  uint32_t unmapped = 0;  // no device memory is mapped any more; 0 where the device refused to unmap some
};
// The session's device work failed: `cuda_error` is in the ring's header already. `device_lost`: the device itself has
// failed, 0 where the worker has refused something. `held_back`: the device's clients share their faults, so that this
// one may be another's. Nothing is in the ring then, the worker does nothing more, and waits to be ended or for
// DeviceFault.
struct WorkerFault {
  static constexpr MessageType kType = MessageType::kWorkerFault;
  uint32_t cuda_error = 0, device_lost = 0, held_back = 0, reserved = 0;
  char text[512] = {};
};
// None of these three while no leases are written (Lease::State::kOpen). The worker hands nothing over any more under
// the lease of that generation, and nothing of what it handed over is left on the device.
struct LeaseReturned {
  static constexpr MessageType kType = MessageType::kLeaseReturned;
  uint64_t generation = 0;
};
// Of the task with that serial: there is work for the device, whether the worker has the lease or not.
struct Backlog {
  static constexpr MessageType kType = MessageType::kBacklog;
  uint64_t serial = 0;
};
// There was, and nothing of it is pending or in flight. Only said while others wait for the device (Lease::wanted) or
// where the lease was lent for a time: who does not say so is lent it again.
struct Drained {
  static constexpr MessageType kType = MessageType::kDrained;
  uint64_t serial = 0;
};

// The task can go on in another worker: nothing of it is under way, and this one does nothing more for it. Or it
// cannot, for the reason that stands on the control page (Obstacle), and this one goes on with it.
struct Suspended {
  static constexpr MessageType kType = MessageType::kSuspended;
  uint64_t serial = 0;
  uint32_t given_up = 0;
  uint32_t unmapped = 0;  // as TaskEnded has it
};

// Of a guarded worker: nothing of the task is under way, and it does not take the next record. The task is to go on
// where no other program's fault ends its work; until then it waits.
struct NeedsApart {
  static constexpr MessageType kType = MessageType::kNeedsApart;
  uint64_t serial = 0;
};

// JSON text, as long as the packet allows; longer replies travel in a memfd beside an empty text.
inline constexpr uint32_t kMaxJsonBytes = 16 * 1024;
struct Command {
  static constexpr MessageType kType = MessageType::kCommand;
  uint32_t version = kProtocolVersion, length = 0;
  char text[kMaxJsonBytes] = {};
};
struct Reply {
  static constexpr MessageType kType = MessageType::kReply;
  uint32_t version = kProtocolVersion, length = 0;  // length of the text, in `text` or in the memfd
  char text[kMaxJsonBytes] = {};
};

}  // namespace heddle::protocol
