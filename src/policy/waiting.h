#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "policy/lessee.h"
#include "policy/task.h"
#include "policy/user_memory.h"
#include "policy/wait_cause.h"

namespace heddle::policy {

// Its place in the queue: by age, then extensions first, then by arrival.
struct WaitKey {
  TimePoint since;
  bool not_extension = false;
  uint64_t arrival = 0;  // unique
  size_t model = 0;      // names the line; never decides the order
  friend auto operator<=>(const WaitKey&, const WaitKey&) = default;
};

// All that decides whether a request must wait, of sessions that hold nothing, where the policy has such requests wait
// alike (Placement::waits_alike).
struct Need {
  Bytes memory;
  uint64_t blocks = 0;
  uint32_t threads_per_block = 0, registers_per_thread = 0;
  Bytes shared_per_block;
  UserId user;  // where what a user may hold is limited
  friend auto operator<=>(const Need&, const Need&) = default;
};

struct Wait {
  RequestKind kind = RequestKind::kTask;
  SessionId session;
  TaskId task;
  uint32_t virtual_device = 0;
  Bytes memory;
  WhyWaits why = {};              // as of the last attempt; empty: as for the others of its need
  std::optional<Need> need = {};  // none: it waits for reasons of its own
  bool set_aside = false;         // attempted only when the gate names it (placement/gate.h)
};

struct Reservation {
  WaitKey holder;
  DeviceId device;
};

// The requests that wait for devices of one model. Models never compete, so each has a line of its own. In a long line
// most requests need the same as others: these stand together, so that one attempt answers for all of them.
class Line {
 public:
  struct Alike {
    std::set<WaitKey> keys;  // never empty
    WhyWaits why;            // they wait, as of the last attempt
  };

  void add(const WaitKey& key, Wait wait);
  Wait remove(const WaitKey& key);
  void set_need(const WaitKey& key, std::optional<Need> need, bool set_aside = false);
  // The request was attempted in vain, as `wait.why` says, and so were all others of its need.
  void answered_for_all(Wait& wait) { alike_.at(*wait.need).why = std::exchange(wait.why, {}); }

  const std::map<WaitKey, Wait>& waits() const { return waits_; }
  Wait& at(const WaitKey& key) { return waits_.at(key); }
  const std::map<Need, Alike>& alike() const { return alike_; }
  const std::set<WaitKey>& others() const { return others_; }
  const WhyWaits& why(const Wait& wait) const {
    return wait.why.empty() && wait.need ? alike_.at(*wait.need).why : wait.why;
  }

  // The request that waits for the longest time for a device. A request that waits for programs of its own user would
  // keep a device from others for nothing: it is passed over.
  std::map<WaitKey, Wait>::const_iterator oldest(const UserMemory& users) const;
  // The request of the lessee, if it is set aside.
  std::optional<WaitKey> set_aside(Lessee lessee) const {
    const auto found = set_aside_.find(lessee);
    return found == set_aside_.end() ? std::nullopt : std::optional(found->second);
  }
  // Whether any request waits for a device, and not for programs of its own user.
  bool anybody_waits(const UserMemory& users) const { return oldest(users) != waits_.end(); }

  std::vector<WaitKey> fresh;  // came since the last pass; the others need no attempt until something returns
  bool retry = false;          // something returned
  std::optional<Reservation> reserved;

 private:
  void stand(const WaitKey& key, const Wait& wait);
  void step_out(const WaitKey& key, Wait& wait);

  std::map<WaitKey, Wait> waits_;
  std::map<Need, Alike> alike_;
  std::set<WaitKey> others_;  // those without a need that are not set aside
  std::map<Lessee, WaitKey> set_aside_;
};

// Whom one pass over a line attempts: those whom the gate names, then the older first. Who needs the same as one that
// was attempted in vain is passed over until something is decided: the answer would be the same.
class Pass {
 public:
  // Over the whole line, or over `keys` alone. The line may change between calls.
  explicit Pass(const Line& line);
  Pass(const Line& line, const std::vector<WaitKey>& keys) : line_(line), extra_(keys.begin(), keys.end()) {}

  // The next to be attempted.
  std::optional<WaitKey> next();
  // The last one waits on: `alike`, so do the others of its need.
  void waits(bool alike);
  // The last one was decided. `fresh` came with that, and is attempted in this pass, by age.
  void decided(const std::vector<WaitKey>& fresh);
  // If there is one it is attempted before all others, whatever its age; those added first go first.
  void add_first(const std::optional<WaitKey>& key) {
    if (key) first_.push_back(*key);
  }

 private:
  struct Head {
    WaitKey key;  // the first of its need that is still to be attempted
    Need need;
    bool operator<(const Head& other) const { return other.key < key; }  // the oldest is a heap's largest
  };
  void put_back(const Need& need);
  void drop_stale();

  const Line& line_;
  std::deque<WaitKey> first_;
  std::optional<WaitKey> last_;
  std::optional<Need> need_;  // of the last
  std::vector<Head> heads_;   // a heap
  std::vector<Need> passed_over_;
  std::set<WaitKey> extra_;
  bool whole_ = false;
};

}  // namespace heddle::policy
