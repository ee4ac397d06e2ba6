#include "client/device/device_memory.h"

namespace heddle::client {
namespace {

// What the arena answers that has no place for a buffer within the budget.
tl::unexpected<Failure> refuse_place(const SegmentCount& count) {
  if (!count.is_full())
    return refuse(cudaErrorMemoryAllocation, "cudaMalloc: no addresses are left in the session's window");
  return refuse(cudaErrorMemoryAllocation,
                stringf("cudaMalloc: the program has %lu pieces of memory, and limits.segments_per_session (%lu) of "
                        "heddled allows no more",
                        static_cast<unsigned long>(count.count()), static_cast<unsigned long>(count.most())));
}

std::string held(const DeviceSegments& segments) {
  return stringf("the program holds %s of its %s",
                 to_string(Bytes{segments.used_bytes() + segments.bytes_beside()}).c_str(),
                 to_string(Bytes{segments.budget_bytes()}).c_str());
}

// Waits until everything up to `sequence` is committed, if it is done; else returns at once. The lock is let go of
// meanwhile.
Done have_committed(const RingPort& ring, RingPort::Lock& lock, uint64_t sequence) {
  const auto is_committed = [&] { return ring.committed() >= sequence; };
  if (is_committed() || ring.header().completed.load(std::memory_order_acquire) < sequence) return {};
  lock.unlock();
  Done done = wait_for_commit(ring, is_committed);
  lock.lock();
  return done;
}

}  // namespace

Answer<uint64_t> DeviceMemory::allocate(uint64_t bytes) {
  Lock lock = ring_.lock();
  HEDDLE_ANSWER(ring_.failure());
  if (const auto promised = promises_.take(bytes)) return *promised;
  HEDDLE_ANSWER(finish_frees(lock, would_add(bytes)));
  auto address = place(bytes);
  if (address) promises_.allocated_without(bytes);
  return address;
}

Answer<uint64_t> DeviceMemory::allocate_room(uint64_t bytes) {
  Lock lock = ring_.lock();
  return place_alone(lock, bytes, protocol::SegmentKind::kRoom);
}

Answer<uint64_t> DeviceMemory::allocate_alone(uint64_t bytes) {
  Lock lock = ring_.lock();
  return place_alone(lock, bytes, protocol::SegmentKind::kDevice);
}

Answer<uint64_t> DeviceMemory::place_alone(Lock& lock, uint64_t bytes, protocol::SegmentKind kind) {
  HEDDLE_ANSWER(ring_.failure());
  HEDDLE_ANSWER(finish_frees(lock, bytes));
  HEDDLE_ANSWER(check_budget(bytes, bytes));
  if (Segment* const idle = kind == protocol::SegmentKind::kDevice ? take_idle(bytes) : nullptr) {
    const auto place = segments_.arena().occupy(idle, bytes);  // all of it: no other buffer finds room there
    HEDDLE_ANSWER(placed(place));
    return place.address;
  }
  HEDDLE_ANSWER(make_way(bytes));
  const auto place = segments_.arena().allocate_alone(bytes, ring_.committed());
  if (!place) return refuse_place(ring_.session().segment_count());
  place->segment->kind = kind;
  HEDDLE_ANSWER(placed(*place));
  return place->address;
}

Done DeviceMemory::charge_driver(DriverCharges::Part part, uint32_t id, uint64_t bytes, const char* what) {
  if (!charges_.on_gpu()) return {};
  Lock lock = ring_.lock();
  HEDDLE_ANSWER(finish_frees(lock, charges_.missing(part, id, bytes)));
  const uint64_t more = charges_.missing(part, id, bytes);
  uint64_t counted = 0;
  if (more != 0) {
    if (!segments_.within_budget(more))
      return refuse(cudaErrorMemoryAllocation,
                    stringf("%s takes %s of device %u: %s there (heddle run --mem)", what,
                            to_string(Bytes{more}).c_str(), ring_.home_index(), held(segments_).c_str()));
    auto placed = place_alone(lock, more, protocol::SegmentKind::kDriver);
    if (!placed) return tl::unexpected(std::move(placed).error());
    counted = *placed;
  }
  charges_.cover(part, id, bytes, counted, more);
  return {};
}

// What was freed can be used again once work that touched it is never run again: where that is done, it is so soon.
// Where memory is short, it has to be done first: cudaFree would have waited for it.
Done DeviceMemory::finish_frees(Lock& lock, uint64_t added) {
  HEDDLE_ANSWER(have_committed(ring_, lock, freed_behind_));
  const bool short_of_segments = added != 0 && ring_.session().segment_count().is_full();
  if (!task_.lazy().waits_to_free() || (segments_.within_budget(added) && !short_of_segments)) return {};
  HEDDLE_ANSWER(task_.prepare(DeviceTask::Begin::kYes));
  lock.unlock();
  Done done = task_.synchronize();
  lock.lock();
  return done;
}

// The segment bytes that a buffer of so many would add. What exceeds the budget is not rounded up: it may be anything.
// A segment that is shared takes no more than a small part of what is left for all that comes, if its buffer fits.
uint64_t DeviceMemory::would_add(uint64_t bytes) {
  constexpr uint64_t kPart = 8;
  if (bytes > segments_.budget_bytes()) return bytes;
  return segments_.arena().would_add(bytes, ring_.committed(), segments_.left() / kPart);
}

Done DeviceMemory::check_budget(uint64_t bytes, uint64_t added) {
  if (segments_.within_budget(added)) return {};
  return refuse(cudaErrorMemoryAllocation,
                stringf("cudaMalloc of %s: %s on device %u (heddle run --mem)", to_string(Bytes{bytes}).c_str(),
                        held(segments_).c_str(), ring_.home_index()));
}

Done DeviceMemory::make_space(uint64_t bytes, uint64_t added) {
  HEDDLE_ANSWER(check_budget(bytes, added));
  return make_way(added);
}

// What is idle makes way for the segment of `added` bytes: for its bytes, and for itself.
Done DeviceMemory::make_way(uint64_t added) {
  if (added != 0 && ring_.session().segment_count().is_full()) return return_idle(0);
  return shrink_idle(added);
}

Answer<uint64_t> DeviceMemory::place(uint64_t bytes) {
  const uint64_t added = would_add(bytes);
  HEDDLE_ANSWER(check_budget(bytes, added));
  if (Segment* const idle = added != 0 ? take_idle(added) : nullptr) {
    const auto place = segments_.arena().occupy(idle, bytes);
    HEDDLE_ANSWER(placed(place));
    return place.address;
  }
  HEDDLE_ANSWER(make_way(added));
  const auto place = segments_.arena().allocate(bytes, ring_.committed(), 0, added);
  if (!place) return refuse_place(ring_.session().segment_count());
  HEDDLE_ANSWER(placed(*place));
  return place->address;
}

Done DeviceMemory::placed(const Arena::Place& place) {
  segments_.count();
  if (!place.new_segment) return {};
  place.segment->born = ring_.last_sequence();
  if (grants_now()) task_.resume();  // its memory is asked for here
  Done created = task_.created(place.segment, grants_now());
  if (created) return {};
  segments_.arena().release(place.address, 0);
  segments_.arena().retire(place.segment, 0);
  segments_.count();
  return created;
}

Answer<uint64_t> DeviceMemory::reserve_addresses(uint64_t bytes) {
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(ring_.failure());
  const auto address = segments_.arena().reserve(bytes, ring_.committed());
  if (!address) return refuse(cudaErrorMemoryAllocation, "no addresses are left in the session's window");
  return *address;
}

Done DeviceMemory::back(uint64_t address, uint64_t bytes) {
  const auto can_back = [&] {
    const Lock lock = ring_.lock();
    return segments_.arena().can_back(address, ring_.committed());
  };
  if (!can_back()) {
    {
      const Lock lock = ring_.lock();
      HEDDLE_ANSWER(task_.prepare(DeviceTask::Begin::kYes));  // else nothing would ever be committed
    }
    HEDDLE_ANSWER(ring_.wait_until(can_back));
  }
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(ring_.failure());
  HEDDLE_ANSWER(make_space(bytes, bytes));
  const auto place = segments_.arena().back(address);
  if (!place) return refuse_place(ring_.session().segment_count());
  return placed(*place);
}

void DeviceMemory::unreserve(uint64_t address) {
  const Lock lock = ring_.lock();
  segments_.arena().unreserve(address);
}

Done DeviceMemory::release(uint64_t address) {
  {
    const Lock lock = ring_.lock();
    const Buffer* buffer = segments_.arena().buffer_at(address);
    const bool known = buffer ? buffer->address == address : freed_early_.contains(address);
    if (!known) return refuse(cudaErrorInvalidValue);
  }
  if (task_.begun()) HEDDLE_ANSWER(task_.synchronize());

  const Lock lock = ring_.lock();
  if (freed_early_.erase(address) > 0) return {};
  return give_back(address, Freed::kWaited);
}

Done DeviceMemory::release_behind(uint64_t address) {
  const Lock lock = ring_.lock();
  if (freed_early_.erase(address) > 0) return {};
  return give_back(address, Freed::kBehind);
}

void DeviceMemory::release_early(uint64_t address) {
  const Lock lock = ring_.lock();
  const Buffer* buffer = segments_.arena().buffer_at(address);
  if (!buffer || buffer->address != address || freed_early_.contains(address)) return;
  if (give_back(address, Freed::kEarly)) freed_early_.insert(address);
}

void DeviceMemory::open_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  promises_.open(task);
}

void DeviceMemory::promise(uint64_t task, uint64_t bytes) {
  if (bytes == 0 || grants_now()) return;
  const Lock lock = ring_.lock();
  if (const auto address = place(bytes)) promises_.add(task, bytes, *address);
}

void DeviceMemory::take_back_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  for (const uint64_t address : promises_.take_back(task)) (void)give_back(address, Freed::kUntaken);
}

std::optional<TaskAccount> DeviceMemory::close_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  const auto closed = promises_.close(task);
  if (!closed) return std::nullopt;
  for (const uint64_t address : closed->left)
    (void)give_back(address, Freed::kUntaken);  // a failure shows at the next call
  return closed->account;
}

void DeviceMemory::give_back_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  for (const uint64_t address : promises_.untaken(task)) (void)give_back(address, Freed::kUntaken);
}

Done DeviceMemory::give_back(uint64_t address, Freed how) {
  task_.resume();
  freed_behind_ = ring_.last_sequence();
  Segment* segment = segments_.arena().release(address, freed_behind_);
  if (!segment) return refuse(cudaErrorInvalidValue);
  if (segment->buffers > 0) return {};
  if (!stays(segment, how)) {
    const bool touched = segment->born != ring_.last_sequence() && (how != Freed::kUntaken || segment->shared);
    HEDDLE_ANSWER(task_.emptied(segment, touched, grants_now()));
  }
  segments_.count();
  // A worker that holds the program's variables stays until the session ends or the program resets the device.
  if (!has_buffers() && !task_.worker_pinned()) return all_freed();
  return {};
}

Done DeviceMemory::release_all() {
  {
    const Lock lock = ring_.lock();
    charges_.forget();  // what counts it goes as buffers do
  }
  for (;;) {
    std::optional<uint64_t> address;
    {
      const Lock lock = ring_.lock();
      address = segments_.arena().first_buffer();
      if (!address) charges_.forget();  // of other threads' calls meanwhile
    }
    if (!address) return {};
    HEDDLE_ANSWER(release(*address));
  }
}

bool DeviceMemory::covers(uint64_t address, uint64_t bytes) {
  const Lock lock = ring_.lock();
  return segments_.arena().covers(address, bytes);
}

std::optional<Buffer> DeviceMemory::buffer_at(uint64_t address) {
  const Lock lock = ring_.lock();
  const Buffer* buffer = segments_.arena().buffer_at(address);
  return buffer ? std::optional(*buffer) : std::nullopt;
}

uint64_t DeviceMemory::used_bytes() {
  const Lock lock = ring_.lock();
  return segments_.used_bytes();
}

uint64_t DeviceMemory::bytes_beside() {
  const Lock lock = ring_.lock();
  return segments_.bytes_beside();
}

size_t DeviceMemory::buffer_count() {
  const Lock lock = ring_.lock();
  return segments_.arena().buffer_count() - charges_.segments();
}

bool DeviceMemory::is_empty() {
  const Lock lock = ring_.lock();
  return !has_buffers() && !task_.lazy().begun();
}

}  // namespace heddle::client
