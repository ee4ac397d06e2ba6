#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "device/software/simt/check/check_log.h"
#include "device/software/simt/check/clocks.h"
#include "device/software/simt/check/written_memory.h"
#include "device/software/simt/warp.h"

// Checks of one block's accesses: races on its shared memory, reads of shared, local and global memory that nobody
// wrote, and accesses to global memory that heddle did not expect of the launch (declared_access.h).
//
// Two accesses of different threads to one byte of shared memory, at least one of them a write, race if neither
// happened before the other (clocks.h). Barriers of the block and of a warp, .sync instructions among lanes, and
// atomic, volatile and ordered accesses to one address tell threads of each other. Accesses of the last kind do not
// race with one another, nor do writes of the same value. A byte remembers its last write and two reads since: of more
// readers that nothing orders some are forgotten, so that a race can be missed but none is made up.
//
// An element that is read counts as uninitialised if none of its bytes was written: compilers read structs with their
// padding.
//
// Not thread-safe: a block runs on one thread at a time.
namespace heddle::software {

// What the checked blocks of a context share.
struct Checks {
  Checks(CheckLog::Tell tell, WrittenMemory memory) : log(std::move(tell)), written(std::move(memory)) {}
  CheckLog log;
  WrittenMemory written;  // of device memory
};

class AccessCheck {
 public:
  AccessCheck(const BlockState& block, Checks& checks);

  // A block begins: nothing is written, nobody has heard of anybody.
  void begin();

  // One lane's access to an element in memory.
  struct Access {
    const Warp& warp;
    const Op& op;
    uint32_t lane;
    bool read, write, ordered;
    uint64_t host;  // where it is
    uint32_t bytes;
    const uint8_t* value = nullptr;  // what is written, where that is known
  };
  void access(const Access& access);

  // An atomic, volatile or ordered access to an address: after and before all others of its kind there.
  void synchronise(const Warp& warp, uint32_t lane, uint64_t address);
  // Lanes that ran a .sync instruction together.
  void meet(const Warp& warp, uint32_t lanes);
  // Lanes that come to a barrier: of the block by its index, of the warp by its mask. What others bring with them is
  // theirs with their next step; with bar.arrive they leave only what is their own.
  void arrive_at_block(const Warp& warp, uint32_t lanes, uint32_t index, bool waits);
  void arrive_at_warp(const Warp& warp, uint32_t lanes, uint32_t mask);
  // The barrier that lanes just came to is complete. Threads that have ended count as if they had come too.
  void block_barrier_completed(uint32_t index);
  // Before any step of these lanes: they have passed the barrier that they came to.
  void pass(const Warp& warp, uint32_t lanes);

  // Local memory of these lanes, from `offset` in each thread's, as of a function that is called or has returned.
  void set_local(const Warp& warp, uint32_t lanes, uint32_t offset, uint32_t bytes, bool written);

 private:
  // Who came to a barrier and what they knew. As long as nobody passes, those that wait learn nothing new, so that what
  // they know is only asked then; most barriers of a block never need it.
  struct Meeting {
    Clocks::Clock clock;
    std::vector<uint32_t> waiting;  // threads that are not in `clock` yet
    uint32_t count = 0;             // of all that wait
    uint32_t lanes = 0;             // of a warp
  };
  struct Step {
    uint32_t time = 0, place = 0;  // time 0: none; place: in the code
    uint16_t thread = 0;
    bool ordered = false;
  };
  struct Byte {
    Step write, reads[2];
    int16_t value = kUnknown;
  };
  static constexpr int16_t kUnknown = -1;

  uint32_t thread_of(const Warp& warp, uint32_t lane) const { return warp.index * kLanes + lane; }
  void wait_at(const std::shared_ptr<Meeting>& meeting, uint32_t thread);
  void access_shared(const Access& access, uint32_t offset);
  void access_byte(const Access& access, uint32_t offset, int16_t value);
  void access_local(const Access& access, uint64_t offset);
  void access_global(const Access& access);
  void remember_read(Byte& byte, const Step& step);
  void find_race(const Access& access, const Step& other, bool other_wrote, uint32_t offset);
  void find_undeclared(const Access& access);
  void find_uninitialised(const Access& access, const char* space, uint64_t address);
  std::string thread_name(const Warp& warp, uint32_t lane) const;
  std::string where(uint32_t place) const;
  std::string block_name() const;

  const BlockState& block_;
  Checks& checks_;
  uint32_t threads_;
  Clocks clocks_;
  std::vector<Byte> shared_;
  std::vector<bool> local_;                        // whether a byte of local memory was written, thread by thread
  std::vector<std::shared_ptr<Meeting>> pending_;  // by thread: the barrier that it came to. Shared by all that came.
  std::shared_ptr<Meeting> barriers_[kBarriers];
  std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<Meeting>> warp_barriers_;  // by warp and mask
  std::map<uint64_t, Clocks::Clock> addresses_;
};

}  // namespace heddle::software
