// ManagedMemory: what goes from one side to the other, and when.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "client/memory/managed_memory.h"
#include "core/clock.h"

namespace heddle::client {

using protocol::CopyRecord;
using protocol::RecordType;

namespace {

constexpr unsigned kMostDoublings = 8;  // of what a touch brings: from 64 KiB to 16 MiB

int protection(ManagedAccess access) {
  return access == ManagedAccess::kWrite ? PROT_READ | PROT_WRITE : PROT_READ;
}

bool protect(uint64_t address, ChunkRange run, int allowed) {
  auto* const first = reinterpret_cast<void*>(address + run.first * kManagedChunkBytes);
  return ::mprotect(first, run.count * kManagedChunkBytes, allowed) == 0;
}

// All at once: a fault for each page of 4 KiB would take longer than the copy. Older kernels cannot, and fault.
void map_pages(uint64_t address, ChunkRange run, ManagedAccess access) {
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // MADV_POPULATE_*, Linux 5.14
  auto* const first = reinterpret_cast<void*>(address + run.first * kManagedChunkBytes);
  (void)::madvise(first, run.count * kManagedChunkBytes,
                  access == ManagedAccess::kWrite ? kPopulateWrite : kPopulateRead);
}

protocol::CopyEnd end_at(uint64_t address, uint64_t bytes) {
  return {protocol::Place::kWindow, 0, 0, 0, address, bytes, bytes};
}

}  // namespace

void ManagedMemory::note_holders() {
  beside_device_ = std::any_of(regions_.begin(), regions_.end(),
                               [](const auto& each) { return each.second->chunks.beside_device() > 0; });
}

// Not waited for.
Answer<uint64_t> ManagedMemory::copy(Region& region, ChunkRange run, bool to_host) {
  const uint64_t offset = run.first * kManagedChunkBytes, bytes = run.count * kManagedChunkBytes;
  const uint64_t here = region.shadow + offset, there = region.address + offset;
  VirtualDevice& device = region.device;
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(to_host ? VirtualDevice::Begin::kYes : VirtualDevice::Begin::kNo));
  auto record = device.reserve<CopyRecord>(RecordType::kCopy, slot_);
  if (!record) return tl::unexpected(std::move(record).error());
  (*record)->to = end_at(to_host ? here : there, bytes);
  (*record)->from = end_at(to_host ? there : here, bytes);
  (*record)->width = bytes;
  (*record)->height = (*record)->depth = 1;
  return device.publish(slot_);
}

Done ManagedMemory::await_copies(VirtualDevice& device, uint64_t sequence) {
  if (sequence == 0 || device.ring().stream_reached(slot_, sequence)) return {};
  HEDDLE_ANSWER(device.start_pending());
  return device.ring().wait_until([&] { return device.ring().stream_reached(slot_, sequence); },
                                  [&] { return device.ring().device_reached(slot_, sequence); },
                                  wait_mode().load(std::memory_order_relaxed));
}

// The host has what the device wrote. Where the device has failed, what it had last: the program learns of the failure
// by its next call.
void ManagedMemory::fetch(Region& region, ChunkRange range, ManagedAccess access) {
  uint64_t last = 0;
  for (const ChunkRange run : region.chunks.to_fetch(range)) {
    const auto sequence = copy(region, run, true);
    if (!sequence) break;
    last = *sequence;
  }
  // What the host may write from now on must not be on its way to the device any more.
  if (access == ManagedAccess::kWrite) last = std::max(last, last_shared_push_);
  (void)await_copies(region.device, last);
}

// The host gets access.
Done ManagedMemory::lend(Region& region, ChunkRange range, ManagedAccess access) {
  fetch(region, range, access);
  for (const ChunkRange run : region.chunks.host_uses(range, access)) {
    if (!protect(region.address, run, protection(access))) return lend_all(region);
    map_pages(region.address, run, access);
  }
  return {};
}

// The kernel has no more mappings for parts of the region.
Done ManagedMemory::lend_all(Region& region) {
  const ChunkRange all{0, region.chunks.size()};
  fetch(region, all, ManagedAccess::kWrite);
  (void)region.chunks.host_uses(all, ManagedAccess::kWrite);
  if (protect(region.address, all, protection(ManagedAccess::kWrite))) return {};
  return refuse(cudaErrorMemoryAllocation,
                stringf("managed memory at 0x%llx cannot be made accessible: %s (vm.max_map_count)",
                        static_cast<unsigned long long>(region.address), std::strerror(errno)));
}

// The device gets the range, with what the host wrote.
Done ManagedMemory::take(Region& region, ChunkRange range, ManagedAccess access) {
  const auto written = region.chunks.to_push(range);
  const int left = access == ManagedAccess::kWrite ? PROT_NONE : PROT_READ;
  for (const ChunkRange run : region.chunks.device_uses(range, access)) {
    if (protect(region.address, run, left)) continue;
    // As in lend(). One mapping is always possible; and the host must not keep what the device may change.
    const ChunkRange all{0, region.chunks.size()};
    (void)protect(region.address, all, PROT_NONE);
    const auto others = region.chunks.to_push(all);
    (void)region.chunks.device_uses(all, ManagedAccess::kWrite);
    for (const ChunkRange other : others) {
      const auto pushed = copy(region, other, false);
      if (!pushed) return tl::unexpected(pushed.error());
    }
    break;
  }
  for (const ChunkRange run : written) {
    const auto sequence = copy(region, run, false);
    if (!sequence) return tl::unexpected(sequence.error());
    last_push_ = *sequence;
    if (access == ManagedAccess::kRead) last_shared_push_ = *sequence;
  }
  if (region.chunks.beside_device() == 0) region.faults = 0;
  return {};
}

Done ManagedMemory::take_all() {
  PageFaults::stay_first();
  Done all;
  for (auto& [address, region] : regions_) {
    if (region->chunks.beside_device() == 0) continue;
    if (const Done taken = take(*region, {0, region->chunks.size()}, ManagedAccess::kWrite); !taken) all = taken;
  }
  note_holders();
  return all;
}

Done ManagedMemory::follow_pushes(const Stream& stream) {
  const uint64_t last = last_push_.load();
  VirtualDevice& device = stream.device;
  if (last == 0 || &device != device_.load() || device.ring().stream_reached(slot_, last)) return {};
  const VirtualDevice::Lock lock = device.lock();
  HEDDLE_ANSWER(device.prepare(VirtualDevice::Begin::kNo));
  auto waits = device.append_plain(RecordType::kEventWait, stream.slot, 0, last);
  return waits ? Done{} : Done(tl::unexpected(std::move(waits).error()));
}

Done ManagedMemory::before_kernel(const Stream& stream) {
  if (!any() || stream.device.is_side_device()) return {};
  if (beside_device_) {
    const std::lock_guard lock(mutex_);
    HEDDLE_ANSWER(take_all());
  }
  return follow_pushes(stream);
}

// Only one of two can be: the thread that touches sees that something was submitted since it waited, or this sees what
// the host holds.
void ManagedMemory::after_kernel(const Stream& stream) {
  if (!any() || stream.device.is_side_device()) return;
  submissions_.fetch_add(1);
  if (beside_device_) (void)before_kernel(stream);  // a failure shows at the next call
}

void ManagedMemory::after(const Stream& stream, uint64_t address, uint64_t bytes, ManagedAccess access) {
  submissions_.fetch_add(1);
  if (beside_device_) (void)before(stream, address, bytes, access);
}

Done ManagedMemory::before(const Stream& stream, uint64_t address, uint64_t bytes, ManagedAccess access) {
  if (bytes == 0) return {};
  {
    const std::lock_guard lock(mutex_);
    Region* const region = region_at(address);
    if (!region) return {};
    const uint64_t offset = address - region->address;
    PageFaults::stay_first();
    HEDDLE_ANSWER(take(*region, ManagedChunks::covering(offset, std::min(bytes, region->bytes - offset)), access));
    note_holders();
  }
  return follow_pushes(stream);
}

void ManagedMemory::after_host_call() {
  if (!lent_to_call_.exchange(false)) return;
  const std::lock_guard lock(mutex_);
  (void)take_all();  // a failure shows at the next call
  (void)await_copies(*device_.load(), last_push_);
}

// --- what the host touches ---

void ManagedMemory::posted(void* self) {
  // The serving thread may be waiting for work.
  protocol::ring_bell(static_cast<ManagedMemory*>(self)->device_.load()->ring().header().to_client);
}

// By faults, as the program would.
void ManagedMemory::touch_for_call(void* self, uint64_t address, uint64_t bytes, bool writes) {
  constexpr uint64_t kPage = 4096;
  const auto buffer = static_cast<ManagedMemory*>(self)->find(address);
  if (!buffer) return;
  const uint64_t end = address + std::min(bytes, buffer->address + buffer->bytes - address);
  for (uint64_t at = address; at < end; at = (at / kPage + 1) * kPage) {
    auto* const byte = reinterpret_cast<unsigned char*>(at);
    if (writes) {
      __atomic_fetch_or(byte, 0, __ATOMIC_RELAXED);
    } else {
      (void)__atomic_load_n(byte, __ATOMIC_RELAXED);
    }
  }
}

bool ManagedMemory::is_in_host_call(const PageFault& fault) const {
  return device_.load()->host_calls().thread() == fault.thread;
}

bool ManagedMemory::serve(const PageFault& fault) {
  const auto access = fault.writes ? ManagedAccess::kWrite : ManagedAccess::kRead;
  const bool waits = !is_in_host_call(fault);
  std::unique_lock lock(mutex_);
  Region* const region = region_at(fault.address);
  if (!region) return false;
  if (!waits) lent_to_call_ = true;
  const uint64_t chunk = (fault.address - region->address) / kManagedChunkBytes;
  // Work that runs beside a host function may write what lies around: of that it is lent no more than it touches.
  const uint64_t most = waits ? kManagedChunkBytes << std::min(region->faults++, kMostDoublings) : kManagedChunkBytes;
  const uint64_t offset = chunk * kManagedChunkBytes;
  const Wanted wanted{fault.address, region->address + offset, std::min(most, region->bytes - offset), access, waits};
  return bring(lock, wanted).has_value();
}

Done ManagedMemory::prefetch_to_host(uint64_t address, uint64_t bytes) {
  std::unique_lock lock(mutex_);
  return bring(lock, {address, address, bytes, ManagedAccess::kRead});
}

// With the lock, which is not held while work is waited for. Where others submit work all the time, which they should
// not, the host gets what was there at some moment.
Done ManagedMemory::bring(std::unique_lock<std::mutex>& lock, const Wanted& wanted) {
  constexpr int kTries = 8;
  const auto [touched, address, bytes, access, waits] = wanted;
  std::optional<StalledTouch> touch;  // of the first wait on: all count together
  for (int tries = 0;; ++tries) {
    Region* const region = region_at(address);
    if (!region) return refuse(cudaErrorInvalidValue);  // freed meanwhile
    const uint64_t offset = address - region->address;
    const ChunkRange range = ManagedChunks::covering(offset, std::min(bytes, region->bytes - offset));
    beside_device_ = true;  // before submissions and submitters are looked at: who comes later sees it, and waits
    const uint64_t seen = submissions_.load();
    if (waits && submitters_.load() > 0) {
      lock.unlock();
      await_submitters();
      lock.lock();
      if (tries < kTries) continue;
    }
    if (!waits || region->chunks.to_fetch(range).empty()) return lend(*region, range, access);
    VirtualDevice& device = region->device;
    if (!touch) touch.emplace(device, touched, buffer_at(*region, touched));
    lock.unlock();
    (void)await_work(*touch, device);  // where it fails, lend() says what the host gets
    lock.lock();
    beside_device_ = true;  // others may have found meanwhile that nothing is
    if ((submissions_.load() != seen || submitters_.load() > 0) && tries < kTries) continue;
    if (region_at(address) == region) return lend(*region, range, access);
  }
}

// Those who are between before() and after(). Bounded: one of them may wait for what a host function waits for.
void ManagedMemory::await_submitters() {
  constexpr Duration kMost = std::chrono::seconds(2);
  Duration pause = std::chrono::microseconds(20);
  const MonotonicClock clock;
  for (const TimePoint end = clock.now() + kMost; submitters_.load() > 0 && clock.now() < end;
       pause = std::min<Duration>(2 * pause, std::chrono::milliseconds(1))) {
    serve_host_calls();
    std::this_thread::sleep_for(pause);
  }
}

Done ManagedMemory::await_work(StalledTouch& touch, VirtualDevice& device) {
  HEDDLE_ANSWER(device.start_pending());
  RingPort::LastWork last;
  {
    const VirtualDevice::Lock lock = device.lock();
    last = device.ring().last_work();
  }
  return device.ring().wait_until(
      [&] {
        serve_host_calls();
        if (device.ring().reached(last)) return true;
        touch.look();
        return false;
      },
      [&] { return device.ring().device_reached(last); }, wait_mode().load(std::memory_order_relaxed));
}

// A host function that touches managed memory: the work that is waited for may wait for that.
void ManagedMemory::serve_host_calls() {
  const auto in_call = [this](const PageFault& fault) { return is_in_host_call(fault); };
  while (auto* const posting = PageFaults::find_posted(in_call))
    PageFaults::answer(posting, serve(PageFaults::fault_of(posting)));
}

}  // namespace heddle::client
