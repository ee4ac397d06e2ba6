#pragma once

#include <functional>

#include "daemon/keepers.h"
#include "daemon/shared.h"

namespace heddle::daemon {

// The sessions' segments and their memory: the registry's entry, the deposit and the descriptor change together here.
class SegmentStore {
 public:
  SegmentStore(Shared& shared, Keepers& keepers) : shared_(shared), keepers_(keepers) {}

  // A declared segment, checked already (segment_rules.h).
  Segment& add(Session& session, const protocol::DeclareSegment& declared);
  // Gives it memory, where it has none: a GPU's comes later, from its keeper, and `told` hears of it.
  Status back(Session& session, Segment& segment);
  // Of memory that came, or of why it does not.
  struct Told {
    std::function<void(Session&, Segment&)> memory = [](Session&, Segment&) {};
    std::function<void(Session&, const Error&)> none = [](Session&, const Error&) {};
  };
  void connect(Told told) { told_ = std::move(told); }
  // Called when memory is about to go that copies are under way with.
  std::function<void(Session&, const Segment&)> on_memory_goes = [](Session&, const Segment&) {};
  // Takes its memory away; the segment stays, as it was when it was declared.
  void unback(Session& session, Segment& segment);
  void remove(Session& session, uint64_t number);
  // The session's own note, which keeps its highest segment number.
  void deposit_session(const Session& session);
  void deposit(const Session& session, const Segment& segment);

  // The GPU that the segment's task was granted. None where the memory is this machine's: of software devices, and
  // pinned.
  const DeviceState* gpu_of(const Session& session, const Segment& segment) const;
  // Of all sessions' segments that have memory of this GPU.
  Bytes backed_on(const DeviceState& gpu) const;

  // Device segments of one virtual device, and pinned host segments, in order of their numbers.
  static std::vector<Segment*> of_device(Session& session, uint32_t virtual_device);
  static std::vector<Segment*> on_host(Session& session);

 private:
  void ask_keeper(Session& session, Segment& segment, const std::string& uuid);
  void answered(SessionId session, uint64_t number, uint64_t request, Result<Fd> memory);
  static void forget_request(Session& session, Segment& segment);

  Shared& shared_;
  Keepers& keepers_;
  Told told_;
  uint64_t last_request_ = 0;
};

}  // namespace heddle::daemon
