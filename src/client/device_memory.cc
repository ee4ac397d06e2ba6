// VirtualDevice: its memory. What it costs is counted in segments, as heddled's ledger does.

#include "client/virtual_device.h"

namespace heddle::client {
namespace {

constexpr const char* kNoAddresses = "cudaMalloc: no addresses are left in the session's window";

}  // namespace

Answer<uint64_t> VirtualDevice::allocate(uint64_t bytes) {
  Lock lock = ring_.lock();
  HEDDLE_ANSWER(failure());
  if (const auto promised = promises_.take(bytes)) return *promised;
  HEDDLE_ANSWER(settle_frees(lock, would_add(bytes)));
  auto address = place(bytes);
  if (address) promises_.allocated_without(bytes);
  return address;
}

Answer<uint64_t> VirtualDevice::allocate_room(uint64_t bytes) {
  Lock lock = ring_.lock();
  HEDDLE_ANSWER(failure());
  HEDDLE_ANSWER(settle_frees(lock, bytes));
  HEDDLE_ANSWER(make_room(bytes, bytes));
  const auto place = arena_.allocate(bytes, ring_.committed());
  if (!place) return refuse(cudaErrorMemoryAllocation, kNoAddresses);
  place->segment->room = true;
  HEDDLE_ANSWER(placed(*place));
  return place->address;
}

// Where memory is short, the work that touches what was freed has to be done first: cudaFree would have waited for it.
Done VirtualDevice::settle_frees(Lock& lock, uint64_t added) {
  if (!task_.waits_to_free() || within_budget(added)) return {};
  HEDDLE_ANSWER(prepare(Begin::kYes));
  lock.unlock();
  Done done = synchronize();
  lock.lock();
  return done;
}

// The segment bytes that a buffer of so many would add. What exceeds the budget is not rounded up: it may be anything.
uint64_t VirtualDevice::would_add(uint64_t bytes) {
  return bytes > session().welcome().budget_bytes ? bytes : arena_.would_add(bytes, ring_.committed());
}

bool VirtualDevice::within_budget(uint64_t added) {
  const uint64_t budget = session().welcome().budget_bytes;
  return added <= budget && used_bytes() + bytes_beside() <= budget - added;
}

Done VirtualDevice::check_budget(uint64_t bytes, uint64_t added) {
  if (within_budget(added)) return {};
  return refuse(cudaErrorMemoryAllocation,
                stringf("cudaMalloc of %s: the program holds %s of its %s on device %u (heddle run --mem)",
                        to_string(Bytes{bytes}).c_str(), to_string(Bytes{used_bytes() + bytes_beside()}).c_str(),
                        to_string(Bytes{session().welcome().budget_bytes}).c_str(), home().index()));
}

Done VirtualDevice::make_room(uint64_t bytes, uint64_t added) {
  HEDDLE_ANSWER(check_budget(bytes, added));
  return shrink_idle(added);
}

Answer<uint64_t> VirtualDevice::place(uint64_t bytes) {
  const uint64_t added = would_add(bytes);
  HEDDLE_ANSWER(check_budget(bytes, added));
  if (Segment* const idle = added != 0 ? take_idle(added) : nullptr) {
    const auto place = arena_.occupy(idle, bytes);
    HEDDLE_ANSWER(placed(place));
    return place.address;
  }
  HEDDLE_ANSWER(shrink_idle(added));
  const auto place = arena_.allocate(bytes, ring_.committed());
  if (!place) return refuse(cudaErrorMemoryAllocation, kNoAddresses);
  HEDDLE_ANSWER(placed(*place));
  return place->address;
}

Done VirtualDevice::placed(const Arena::Place& place) {
  count_bytes();
  if (!place.new_segment) return {};
  place.segment->born = ring_.last_sequence();
  if (binds_now()) resume();  // its memory is asked for here
  Done created = task_.created(place.segment, binds_now());
  if (created) return {};
  arena_.release(place.address, 0);
  arena_.retire(place.segment, 0);
  count_bytes();
  return created;
}

Answer<uint64_t> VirtualDevice::reserve_addresses(uint64_t bytes) {
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(failure());
  const auto address = arena_.reserve(bytes, ring_.committed());
  if (!address) return refuse(cudaErrorMemoryAllocation, kNoAddresses);
  return *address;
}

Done VirtualDevice::back(uint64_t address, uint64_t bytes) {
  const auto can_back = [&] {
    const Lock lock = ring_.lock();
    return arena_.can_back(address, ring_.committed());
  };
  if (!can_back()) {
    {
      const Lock lock = ring_.lock();
      HEDDLE_ANSWER(prepare(Begin::kYes));  // else nothing would ever be committed
    }
    HEDDLE_ANSWER(ring_.wait_until(can_back));
  }
  const Lock lock = ring_.lock();
  HEDDLE_ANSWER(failure());
  HEDDLE_ANSWER(make_room(bytes, bytes));
  return placed(arena_.back(address));
}

void VirtualDevice::unreserve(uint64_t address) {
  const Lock lock = ring_.lock();
  arena_.unreserve(address);
}

Done VirtualDevice::release(uint64_t address) {
  {
    const Lock lock = ring_.lock();
    const Buffer* buffer = arena_.buffer_at(address);
    const bool known = buffer ? buffer->address == address : freed_early_.contains(address);
    if (!known) return refuse(cudaErrorInvalidValue);
  }
  if (task_begun()) HEDDLE_ANSWER(synchronize());

  const Lock lock = ring_.lock();
  if (freed_early_.erase(address) > 0) return {};
  return give_back(address, Freed::kWaited);
}

Done VirtualDevice::release_behind(uint64_t address) {
  const Lock lock = ring_.lock();
  if (freed_early_.erase(address) > 0) return {};
  return give_back(address, Freed::kBehind);
}

void VirtualDevice::release_early(uint64_t address) {
  const Lock lock = ring_.lock();
  const Buffer* buffer = arena_.buffer_at(address);
  if (!buffer || buffer->address != address || freed_early_.contains(address)) return;
  if (give_back(address, Freed::kEarly)) freed_early_.insert(address);
}

void VirtualDevice::open_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  promises_.open(task);
}

void VirtualDevice::promise(uint64_t task, uint64_t bytes) {
  if (bytes == 0 || binds_now()) return;
  const Lock lock = ring_.lock();
  if (const auto address = place(bytes)) promises_.add(task, bytes, *address);
}

void VirtualDevice::take_back_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  for (const uint64_t address : promises_.take_back(task)) (void)give_back(address, Freed::kUntaken);
}

std::optional<TaskAccount> VirtualDevice::close_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  const auto closed = promises_.close(task);
  if (!closed) return std::nullopt;
  for (const uint64_t address : closed->left)
    (void)give_back(address, Freed::kUntaken);  // a failure shows at the next call
  return closed->account;
}

void VirtualDevice::give_back_promises(uint64_t task) {
  const Lock lock = ring_.lock();
  for (const uint64_t address : promises_.untaken(task)) (void)give_back(address, Freed::kUntaken);
}

Done VirtualDevice::give_back(uint64_t address, Freed how) {
  resume();
  Segment* segment = arena_.release(address, ring_.last_sequence());
  if (!segment) return refuse(cudaErrorInvalidValue);
  if (segment->buffers > 0) return {};
  if (!stays(segment, how)) {
    const bool touched = segment->born != ring_.last_sequence() && (how != Freed::kUntaken || segment->shared);
    HEDDLE_ANSWER(task_.emptied(segment, touched, binds_now()));
  }
  count_bytes();
  // A worker that holds the program's variables stays until the session ends or the program resets the device.
  if (arena_.buffer_count() == 0 && !worker_pinned_) return all_freed();
  return {};
}

Done VirtualDevice::release_all() {
  for (;;) {
    std::optional<uint64_t> address;
    {
      const Lock lock = ring_.lock();
      address = arena_.first_buffer();
    }
    if (!address) return {};
    HEDDLE_ANSWER(release(*address));
  }
}

// The variables of the program's modules begin anew, and what kernels allocated is gone: a worker that holds any goes.
Done VirtualDevice::reset() {
  HEDDLE_ANSWER(release_all());
  const Lock lock = ring_.lock();
  const bool rested = task_.resting();
  resume();
  HEDDLE_ANSWER(reset_limits());
  const bool pinned = std::exchange(worker_pinned_, false);
  if (!task_.begun() || (!pinned && !rested)) return {};
  HEDDLE_ANSWER(return_idle(0));
  if (pinned) HEDDLE_ANSWER(append(protocol::RecordType::kReset, 0));
  return task_.all_freed();
}

Done VirtualDevice::need_segment(uint64_t number) {
  const Lock lock = ring_.lock();
  resume();
  if (!task_.begun()) return {};
  auto sequence = append(protocol::RecordType::kNeed, number);
  return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
}

bool VirtualDevice::task_begun() {
  const Lock lock = ring_.lock();
  return task_.begun();
}

bool VirtualDevice::covers(uint64_t address, uint64_t bytes) {
  const Lock lock = ring_.lock();
  return arena_.covers(address, bytes);
}

std::optional<Buffer> VirtualDevice::buffer_at(uint64_t address) {
  const Lock lock = ring_.lock();
  const Buffer* buffer = arena_.buffer_at(address);
  return buffer ? std::optional(*buffer) : std::nullopt;
}

uint64_t VirtualDevice::live_bytes() {
  const Lock lock = ring_.lock();
  return used_bytes();
}

uint64_t VirtualDevice::lanes_bytes() const {
  uint64_t bytes = 0;
  for_each_lane([&](const VirtualDevice& lane) { bytes += lane.held_bytes_.load(std::memory_order_relaxed); });
  return bytes;
}

uint64_t VirtualDevice::bytes_beside() const {
  if (!home_) return lanes_bytes();
  return home_->held_bytes_.load(std::memory_order_relaxed) + home_->lanes_bytes() -
         held_bytes_.load(std::memory_order_relaxed);
}

}  // namespace heddle::client
