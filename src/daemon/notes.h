#pragma once

// What heddled writes on its deposits: enough to know everything again after a restart. Plain data; the vault sees only
// bytes. A note of another size than ours comes from another version of heddled and is not read.

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/result.h"
#include "protocol/control_page.h"
#include "protocol/own_messages.h"

namespace heddle::daemon {

enum class NoteKind : uint64_t {
  kListener = 1,  // key 1: control, 2: worker. Descriptor: the listening socket; the note is its path. By the vault.
  kIds,           // key 0: ids below `next` may be in use. No descriptor.
  kLife,          // key 0: what heddled is told of its former lives. No descriptor.
  kBoard,         // key: device. Descriptor: the software device's shared board.
  kJob,           // key: job. No descriptor.
  kSession,       // key: session. Descriptor: its process.
  kRing,          // key: an id of its own. Descriptor: the ring.
  kModule,        // likewise. Descriptor: the fat binary.
  kTask,          // key: task. No descriptor.
  kSegment,       // key: segment. Descriptor: the memory, once there is some.
  kWorker,        // key: worker. Descriptor: its process.
  kGpus,     // key 0: the machine's GPUs as the first heddled found them. Descriptor: lines of heddle-keeper --list.
  kControl,  // key: that of its ring. Descriptor: the ring's control page.
  kFault,    // key: device. Its workers are ended for a fault that its programs share. No descriptor.
};

struct IdsNote {
  uint64_t next;
};
struct LifeNote {
  uint64_t starts;  // of heddled, this one included
  char policy[64];  // as it was set last
};
struct GpusNote {
  uint64_t length;  // of the text
};
struct BoardNote {
  uint64_t bytes;
  char model[32];
};
struct JobNote {
  uint64_t secret, budget_bytes;
  uint32_t uid, user_facing, suspended, swap;
  double weight, share, limit;
  int64_t slo_ns;
  char name[64];
  char app[64];
};
struct SessionNote {
  uint64_t job, secret, budget_bytes, highest_segment;
  uint32_t uid, pid;
  uint32_t device_count, seen_devices;
  protocol::Window window;  // base 0: not chosen yet
  char program[64];
  char model[32];
};
struct RingNote {
  uint64_t session;  // stays first: what it stands for is known of other versions' notes, too
  uint64_t last_serial, generation;
  uint32_t virtual_device;
  int32_t assigned_device;       // under a policy that assigns jobs; -1: none
  protocol::Usage accounted;     // of the tasks that have ended
  uint64_t unused, resumptions;  // see Resumption
  uint64_t terminations, terminations_refused;
};
struct ControlNote {
  uint64_t session;
  uint32_t virtual_device, reserved;
};
struct ModuleNote {
  uint64_t session, bytes;
  uint32_t module, reserved;
};
struct TaskNote {
  enum Place : uint32_t { kWaits, kGranted, kSwapped };
  uint64_t session, serial, arrived_ns;
  protocol::ComputeNeed need;  // names the virtual device
  uint32_t place, device;      // of one that is swapped: which it had
  uint32_t gives_way, swaps;   // see Task
};
struct SegmentNote {
  enum Memory : uint32_t { kNone, kOnDevice, kInSwapSpace, kOnHost };  // what its descriptor is
  uint64_t session, number, address, bytes;
  protocol::SegmentKind kind;
  uint32_t virtual_device, memory, held;
};
struct WorkerNote {
  uint64_t secret, session, serial;  // session 0: warm
  uint32_t device, pid, virtual_device, uid;
  uint32_t terminating, kind;
};

struct FaultNote {
  uint64_t origin;  // session
  uint32_t virtual_device, cuda_error, kernel, reserved;
  char text[208], own_text[256];
};

template <class Note>
std::string write_note(const Note& note) {
  static_assert(std::is_trivially_copyable_v<Note> && sizeof(Note) <= protocol::kMaxNoteBytes);
  return std::string(reinterpret_cast<const char*>(&note), sizeof note);
}

template <class Note>
Result<Note> read_note(std::string_view text) {
  if (text.size() != sizeof(Note))
    return fail(ErrorCode::kCorrupt, "a note of %zu bytes where %zu are due", text.size(), sizeof(Note));
  Note note;
  std::memcpy(&note, text.data(), sizeof note);
  return note;
}

}  // namespace heddle::daemon
