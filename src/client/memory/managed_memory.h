#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "client/device/virtual_device.h"
#include "client/memory/host_memory.h"
#include "client/memory/managed_buffer.h"
#include "client/memory/managed_chunks.h"
#include "client/memory/page_faults.h"
#include "client/memory/stalled_touch.h"

// Managed memory that lives on the device while kernels run, and comes to the host where the program touches it.
//
//   worker          X: device memory          Y: pinned memory
//   this process    X: Y's pages, with as     Y: pinned memory
//                   much access as the
//                   host has (managed_chunks.h)
//
// The program knows X alone. A chunk goes from one side to the other by a copy between X and Y that the worker does, in
// a stream of its own:
// - to the host when the program touches it (page_faults.h): all work that was called so far is waited for, since it
//   may write the chunk. The more a region is touched, the more comes at once.
// - to the device before a kernel, or a copy of that chunk: the host loses its access, and what it wrote is pushed.
//   The operation's stream waits for the push, the program does not.
// Regions are whole segments; allocations below kOwnSegmentFrom share them, as device memory does. One shared region
// stays when its last buffer goes, for a program that allocates and frees small buffers in a loop, as long as the
// program has other memory on the device.
//
// The program may not touch managed memory while kernels run (concurrentManagedAccess is 0). Where it does, it waits
// for them. In a host function (cudaLaunchHostFunc), behind which work may wait, it does not: what the function was
// lent goes back when it returns.
//
// Thread safety: any thread. The lock is taken before a device's. It is not held while work is waited for, but for
// copies in the own stream.
namespace heddle::client {

class ManagedMemory {
 public:
  // Who uses a range of it on the device: a stream that what follows is enqueued in.
  struct Stream {
    VirtualDevice& device;
    uint32_t slot;
  };

  explicit ManagedMemory(HostMemory& host) : host_(host) {}

  // Lives from before() to behind after(): meanwhile nobody is lent what the work may use, but for host functions.
  class Submission {
   public:
    explicit Submission(ManagedMemory& memory) : memory_(memory) { memory_.submitters_.fetch_add(1); }
    ~Submission() { memory_.submitters_.fetch_sub(1); }
    Submission(const Submission&) = delete;
    Submission& operator=(const Submission&) = delete;

   private:
    ManagedMemory& memory_;
  };

  bool any() const { return any_.load(std::memory_order_acquire); }

  // cudaErrorMemoryAllocation where the device's budget or the pinned memory has no space for it.
  Answer<uint64_t> allocate(VirtualDevice& device, uint64_t bytes);
  // Waits for all work. cudaErrorInvalidValue for what is no allocation's start.
  Done release(uint64_t address);
  Done release_all();
  // Other memory of the device was freed: what stays for later buffers goes with the last of it.
  Done release_spare();
  // The buffer that holds the address: of those that live on the device, and of all.
  std::optional<ManagedBuffer> find(uint64_t address);
  std::optional<ManagedBuffer> find_anywhere(uint64_t address);

  // Before and after work that uses bytes [address, address + bytes) is enqueued in the stream; a kernel may use
  // everything. A host function may touch the memory in between: after() takes it from there. With a Submission, and
  // without the device's lock. Nothing happens where the range is no managed memory.
  Done before(const Stream& stream, uint64_t address, uint64_t bytes, ManagedAccess access);
  void after(const Stream& stream, uint64_t address, uint64_t bytes, ManagedAccess access);
  Done before_kernel(const Stream& stream);
  void after_kernel(const Stream& stream);

  // The host will use the range: all of it comes, when the work that was called so far is done.
  Done prefetch_to_host(uint64_t address, uint64_t bytes);
  // A host function has returned.
  void after_host_call();

 private:
  struct Region {
    Region(VirtualDevice& on, uint64_t at, uint64_t size, uint64_t pinned)
        : device(on), address(at), bytes(size), shadow(pinned), chunks(size / kManagedChunkBytes), buffers(at, size) {}
    VirtualDevice& device;
    const uint64_t address, bytes, shadow;
    ManagedChunks chunks;
    unsigned faults = 0;  // since the device had all of it
    Arena buffers;        // one segment, the whole region: a large buffer's own, or what small ones share
  };

  Answer<std::unique_ptr<Region>> make_region(VirtualDevice& device, uint64_t bytes);
  Done release_region(std::unique_ptr<Region> region);
  Done start_serving(VirtualDevice& device);

  // Under the lock.
  Region* region_at(uint64_t address);
  bool is_spare(const Region& region) const;
  bool may_stay(const Region& region);
  std::unique_ptr<Region> take_out(Region& region);
  std::optional<uint64_t> place_in_shared(uint64_t bytes);
  void fetch(Region& region, ChunkRange range, ManagedAccess access);
  Done lend(Region& region, ChunkRange range, ManagedAccess access);
  Done lend_all(Region& region);
  Done take(Region& region, ChunkRange range, ManagedAccess access);
  Done take_all();
  Answer<uint64_t> copy(Region& region, ChunkRange run, bool to_host);
  Done follow_pushes(const Stream& stream);
  Done await_copies(VirtualDevice& device, uint64_t sequence);
  void note_holders();

  // In the serving thread.
  bool serve(const PageFault& fault);
  // What the host is to have, and the address that was named or touched. In a host function nothing is waited for.
  struct Wanted {
    uint64_t touched, address, bytes;
    ManagedAccess access;
    bool waits = true;
  };
  Done bring(std::unique_lock<std::mutex>& lock, const Wanted& wanted);
  static std::optional<ManagedBuffer> buffer_at(const Region& region, uint64_t address);
  Done await_work(StalledTouch& touch, VirtualDevice& device);
  void await_submitters();
  bool is_in_host_call(const PageFault& fault) const;
  void serve_host_calls();
  static void posted(void* self);
  static void touch_for_call(void* self, uint64_t address, uint64_t bytes, bool writes);

  HostMemory& host_;
  std::atomic<bool> any_{false};            // regions
  std::atomic<bool> beside_device_{false};  // chunks that are not the device's alone
  std::atomic<uint64_t> submissions_{0};
  std::atomic<uint32_t> submitters_{0};
  std::atomic<uint64_t> last_push_{0};  // record of the own stream
  std::atomic<VirtualDevice*> device_{nullptr};
  std::atomic<bool> lent_to_call_{false};

  std::mutex mutex_;                                     // guards what follows
  std::map<uint64_t, std::unique_ptr<Region>> regions_;  // by address; each has a buffer
  uint32_t slot_ = 0;                                    // the own stream
  uint64_t last_shared_push_ = 0;                        // of chunks that the host may still read
};

}  // namespace heddle::client
