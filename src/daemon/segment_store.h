#pragma once

#include "daemon/copies.h"
#include "daemon/keepers.h"
#include "daemon/shared.h"
#include "daemon/swap_space.h"

namespace heddle::daemon {

// The sessions' segments and their memory: the registry's entry, the deposit and the descriptor change together here.
//
// A GPU's memory goes back to its keeper, which serves it again, if it is certain that nobody can touch it any more.
// Else its descriptor is closed, and the driver has the memory back when the last mapping of it is gone. It is certain
// - of memory that no worker was given;
// - when the worker has said of it, or of all at its task's end, that it is unmapped;
// - when the worker's process was reaped, and the GPU is not shared through MPS, whose server ends a client's work.
// It never is
// - of memory that was made before a restart of heddled, or given to a worker again after one: the worker may have said
//   that it is unmapped before it was given it again, and mapped it then;
// - of both ends of a copy that was cancelled (Copies): a keeper may still be at a part of it.
class SegmentStore {
 public:
  SegmentStore(Shared& shared, Keepers& keepers, Copies& copies, SwapSpace& swap_space)
      : shared_(shared), keepers_(keepers), copies_(copies), swap_space_(swap_space) {}

  // A declared segment, checked already (segment_rules.h).
  Segment& add(Session& session, const protocol::DeclareSegment& declared);
  // Gives it memory, where it has none: a GPU's comes later, from its keeper (MemoryAnswered).
  Status back(Session& session, Segment& segment);
  // Whether a keeper has refused it for the first time: contexts of workers that serve nobody never cost a program its
  // memory, so they end, and it is asked for again, once.
  bool may_ask_again(const MemoryAnswered& answered);
  void ask_again(const MemoryRequest& request);
  // What has come for a segment that still waits for it; nothing where none does.
  struct Arrived {
    Session* session;
    Segment* segment;           // has its memory
    std::optional<Error> none;  // or why there is none
  };
  std::optional<Arrived> arrived(MemoryAnswered answered);
  // Takes its memory away; copies from and to it end, and the segment stays, as it was when it was declared.
  void unback(Session& session, Segment& segment);
  // The device's memory alone.
  void drop_device_memory(Session& session, Segment& segment);
  void remove(Session& session, uint64_t number);

  // Its bytes are to leave the device, or to come back: what is under way for that counts in swap space, and changes
  // nothing in the vault.
  void leave(Session& session, Segment& segment);
  // They are all in swap space: the device's memory goes back. Or they stay, and what was copied is forgotten.
  void left(Session& session, Segment& segment);
  void stay(Session& session, Segment& segment);
  // They are back on the device, and swap space has them no more.
  void returned(Session& session, Segment& segment);
  // Its task is granted: it gets memory on the host, which counts in swap space.
  void put_on_host(Session& session, Segment& segment);
  // Its task leaves its device: it stays in swap space.
  void swapped_from_host(Session& session, Segment& segment);
  // Whether the answer is for memory on the host that a task runs with, not to copy to.
  bool is_for_running(const MemoryRequest& request) { return waiting(request) != nullptr; }
  // The same for all device segments of one virtual device: memory for those that are held; all of them removed, so
  // that nothing of it is live.
  Status back_all(Session& session, uint32_t virtual_device);
  void remove_all(Session& session, uint32_t virtual_device);
  // A worker is about to be given the segment's memory.
  static void give(Segment& segment);
  // The worker that was given it has unmapped it or is gone.
  static void let_go(Segment& segment) { segment.given = false; }
  static void let_go_all(Session& session, uint32_t virtual_device);
  // The session's own note, which keeps its highest segment number.
  void deposit_session(const Session& session);
  void deposit(const Session& session, const Segment& segment);

  // Of all sessions' segments that have memory of this GPU.
  Bytes backed_on(const DeviceState& gpu) const;
  // Tells the GPU's keeper how much memory it may keep ready: what nobody has, less what warm workers may take beyond
  // those that are configured (warm_target.h).
  void limit_pool(DeviceId gpu);

  // Device segments of one virtual device, and pinned host segments, in order of their numbers.
  static std::vector<Segment*> of_device(Session& session, uint32_t virtual_device);
  static std::vector<Segment*> on_host(Session& session);

  uint64_t new_request() { return ++last_request_; }

 private:
  Status back_on_host(Session& session, Segment& segment);
  void ask_keeper(Session& session, Segment& segment, const std::string& uuid);
  Bytes unused_on(DeviceId gpu) const;
  Segment* waiting(const MemoryRequest& request);
  void dispose(const Segment& segment, Fd memory);
  static void forget_request(Session& session, Segment& segment);

  Shared& shared_;
  Keepers& keepers_;
  Copies& copies_;
  SwapSpace& swap_space_;
  uint64_t last_request_ = 0;
};

}  // namespace heddle::daemon
