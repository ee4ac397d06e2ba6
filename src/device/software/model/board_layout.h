#pragma once

#include <pthread.h>

#include <cstdint>

#include "core/device_model.h"
#include "core/occupancy.h"

// The board of a device as it lies in shared memory. A memory of zeros is a fresh board.
//
//   BoardHeader                      the lock; copy engines; whose turn it is
//   ClientRecord[kMostClients]       the contexts that are attached, and what they wait for
//   SmRecord[sms]                    sums over the slots of each SM
//   SlotRecord[sms * slots_per_sm]   one for each block that an SM can hold: which client's block stands there
//
// The slots are the truth: a slot is taken by the single store of `holder`, and everything else that is known about
// blocks can be worked out from the slots again. That is what happens after a client was killed inside the lock.
// Everything but `state` and the doorbells is read and written under the lock. What is read is used only after a check
// of its range: another process wrote it.
namespace heddle::software {

inline constexpr uint32_t kMostClients = 128;
inline constexpr uint32_t kWaitsPerClient = 16;
inline constexpr uint32_t kCopyEngines = 2;
inline constexpr uint32_t kBoardVersion = 3;
// How often the first in line may be overtaken. Then the line is held up until it fits.
inline constexpr uint32_t kMostOvertaken = 64;

// Blocks of one launch that wait for space.
struct WaitRecord {
  uint64_t ticket = 0;  // the lowest is first in line; 0: the record is free
  uint64_t launch = 0;  // a number of the client's own
  uint64_t wanted = 0;  // blocks
  int64_t ready_ns = 0;
  SmShare need;
  uint32_t together = 0;  // all at once or none (cooperative launches)
  uint32_t passed = 0;    // blocks of others that were placed though this launch was first in line

  bool holds_line() const { return ticket != 0 && passed >= kMostOvertaken; }
};

struct ClientRecord {
  pthread_mutex_t life;       // robust; held by the client as long as it is attached
  uint32_t attached = 0;      // somebody holds `life`, or died holding it
  uint32_t doorbell = 0;      // a futex: rung when there is something new for the client
  uint32_t uncollected = 0;   // others have placed blocks for it since it last looked
  uint32_t sms = 0;           // its blocks may be on the first so many
  uint64_t turn_ticket = 0;   // time slicing: it wants the device; the lowest is next. 0: it does not
  int64_t turn_asked_ns = 0;  // time slicing: since when it has wanted it
  int64_t owned_ns = 0;       // time slicing: how long it has had the device
  WaitRecord waits[kWaitsPerClient];
};

struct SmRecord {
  SmShare used;
  SmShare used_before;      // as it would be without the releases at `released_ns`
  int64_t released_ns = 0;  // when blocks left it last
};

struct SlotRecord {
  uint32_t holder = 0;     // client + 1; 0: free
  uint32_t collected = 0;  // the holder knows
  uint64_t launch = 0;
  int64_t start_ns = 0;
  SmShare held;
};

struct BoardHeader {
  uint32_t state = 0;  // 0 fresh, 1 ready
  uint32_t version = 0;
  uint32_t sms = 0, slots_per_sm = 0;
  pthread_mutex_t lock;  // robust
  uint64_t next_ticket = 0;
  int64_t line_went_on_ns = 0;                 // when a launch last ceased to hold the line up
  int64_t copies_until_ns[kCopyEngines] = {};  // each engine is busy until then
  uint32_t turn_holder = 0;                    // client + 1; 0: the device is idle
  int64_t turn_since_ns = 0, idle_since_ns = 0;
  int64_t slice_start_ns = 0;
};

}  // namespace heddle::software
