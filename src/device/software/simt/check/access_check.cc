#include "device/software/simt/check/access_check.h"

#include <algorithm>
#include <bit>

#include "device/software/simt/block_state.h"
#include "device/software/simt/check/declared_access.h"
#include "device/software/simt/check/each_lane.h"

namespace heddle::software {
namespace {

// More addresses than that share one clock: threads then count as ordered that are not, and races may be missed.
constexpr size_t kMostAddresses = 4096;

uint64_t address_of(const void* host) {
  return reinterpret_cast<uintptr_t>(host);
}

}  // namespace

AccessCheck::AccessCheck(const BlockState& block, Checks& checks)
    : block_(block), checks_(checks), threads_(static_cast<uint32_t>(block.launch.block.count())), clocks_(threads_) {}

void AccessCheck::begin() {
  clocks_.reset();
  shared_.assign(block_.shared_bytes, {});
  local_.assign(size_t{threads_} * block_.local_bytes, false);
  pending_.assign(threads_, nullptr);
  std::fill(std::begin(barriers_), std::end(barriers_), nullptr);
  warp_barriers_.clear();
  addresses_.clear();
}

void AccessCheck::access(const Access& access) {
  if (access.ordered) synchronise(access.warp, access.lane, access.host);
  const uint64_t shared = access.host - address_of(block_.shared);
  if (shared < block_.shared_bytes) return access_shared(access, static_cast<uint32_t>(shared));
  const uint64_t local = access.host - address_of(access.warp.local) - uint64_t{access.lane} * block_.local_stride;
  if (local < block_.local_bytes) return access_local(access, local);
  access_global(access);
}

void AccessCheck::access_shared(const Access& access, uint32_t offset) {
  const auto begin = shared_.begin() + offset, end = begin + access.bytes;
  const bool written = std::any_of(begin, end, [](const Byte& byte) { return byte.write.time != 0; });
  if (access.read && !written) find_uninitialised(access, "shared", offset);
  for (uint32_t i = 0; i < access.bytes; ++i)
    access_byte(access, offset + i, access.value ? access.value[i] : kUnknown);
}

void AccessCheck::access_byte(const Access& access, uint32_t offset, int16_t value) {
  const uint32_t thread = thread_of(access.warp, access.lane);
  Byte& byte = shared_[offset];
  const auto races = [&](const Step& other) {
    return other.time != 0 && !(other.ordered && access.ordered) &&
           !clocks_.has_heard(thread, other.thread, other.time);
  };
  const Step step{clocks_.now(thread), static_cast<uint32_t>(&access.op - access.warp.code),
                  static_cast<uint16_t>(thread), access.ordered};
  const bool same_value = value != kUnknown && byte.value == value;
  if (races(byte.write) && !same_value) find_race(access, byte.write, true, offset);
  if (!access.write) return remember_read(byte, step);
  for (const Step& read : byte.reads) {
    if (races(read)) find_race(access, read, false, offset);
  }
  byte = {step, {}, value};
}

// In the place of one that happened before it, or in a free one.
void AccessCheck::remember_read(Byte& byte, const Step& step) {
  for (Step& read : byte.reads) {
    if (read.time != 0 && !clocks_.has_heard(step.thread, read.thread, read.time)) continue;
    read = step;
    return;
  }
}

void AccessCheck::access_local(const Access& access, uint64_t offset) {
  const uint64_t first = uint64_t{thread_of(access.warp, access.lane)} * block_.local_bytes + offset;
  const auto begin = local_.begin() + static_cast<ptrdiff_t>(first), end = begin + access.bytes;
  if (access.read && std::find(begin, end, true) == end) find_uninitialised(access, "local", offset);
  if (access.write) std::fill(begin, end, true);
}

void AccessCheck::access_global(const Access& access) {
  if (block_.launch.declared) find_undeclared(access);
  if (access.read && !checks_.written.any(access.host, access.bytes)) find_uninitialised(access, "global", access.host);
  if (access.write) checks_.written.mark(access.host, access.bytes);
}

void AccessCheck::synchronise(const Warp& warp, uint32_t lane, uint64_t address) {
  const uint32_t thread = thread_of(warp, lane);
  if (addresses_.size() >= kMostAddresses && !addresses_.contains(address)) address = 0;
  Clocks::Clock& clock = addresses_[address];
  clock.resize(threads_);
  clocks_.acquire(thread, clock);
  clocks_.release(thread, clock);
}

void AccessCheck::meet(const Warp& warp, uint32_t lanes) {
  if (lanes) clocks_.meet(warp.index, lanes, lanes == warp.live);
}

void AccessCheck::wait_at(const std::shared_ptr<Meeting>& meeting, uint32_t thread) {
  meeting->waiting.push_back(thread);
  ++meeting->count;
  pending_[thread] = meeting;
}

void AccessCheck::arrive_at_block(const Warp& warp, uint32_t lanes, uint32_t index, bool waits) {
  if (index >= kBarriers) return;
  std::shared_ptr<Meeting>& meeting = barriers_[index];
  const bool open = block_.barriers_in_use >> index & 1;
  if (!meeting || !open) meeting = std::make_shared<Meeting>();
  for_each_lane(lanes, [&](uint32_t lane) {
    if (waits) return wait_at(meeting, thread_of(warp, lane));
    clocks_.release(thread_of(warp, lane), meeting->clock);
  });
}

void AccessCheck::block_barrier_completed(uint32_t index) {
  if (index >= kBarriers) return;
  const std::shared_ptr<Meeting> meeting = std::move(barriers_[index]);
  const bool everybody_waited = meeting && meeting->count == block_.live && meeting->clock.empty();
  if (!everybody_waited) return;
  std::fill(pending_.begin(), pending_.end(), nullptr);
  clocks_.meet_all();
}

void AccessCheck::arrive_at_warp(const Warp& warp, uint32_t lanes, uint32_t mask) {
  std::shared_ptr<Meeting>& meeting = warp_barriers_[{warp.index, mask}];
  if (!meeting) meeting = std::make_shared<Meeting>();
  for_each_lane(lanes, [&](uint32_t lane) { wait_at(meeting, thread_of(warp, lane)); });
  meeting->lanes |= lanes;
  if ((mask & warp.live & ~meeting->lanes) == 0) meeting = nullptr;
}

void AccessCheck::pass(const Warp& warp, uint32_t lanes) {
  for_each_lane(lanes, [&](uint32_t lane) {
    std::shared_ptr<Meeting>& meeting = pending_[thread_of(warp, lane)];
    if (!meeting) return;
    for (const uint32_t thread : meeting->waiting) clocks_.release(thread, meeting->clock);
    meeting->waiting.clear();
    clocks_.acquire(thread_of(warp, lane), meeting->clock);
    meeting = nullptr;
  });
}

void AccessCheck::set_local(const Warp& warp, uint32_t lanes, uint32_t offset, uint32_t bytes, bool written) {
  if (uint64_t{offset} + bytes > block_.local_bytes) return;
  for_each_lane(lanes, [&](uint32_t lane) {
    const uint64_t first = uint64_t{thread_of(warp, lane)} * block_.local_bytes + offset;
    std::fill_n(local_.begin() + static_cast<ptrdiff_t>(first), bytes, written);
  });
}

std::string AccessCheck::thread_name(const Warp& warp, uint32_t lane) const {
  return stringf("thread %u,%u,%u", warp.tid[0][lane], warp.tid[1][lane], warp.tid[2][lane]);
}

std::string AccessCheck::where(uint32_t place) const {
  return block_.kernel->line_name(place);
}

std::string AccessCheck::block_name() const {
  return stringf("kernel %s, block %u,%u,%u", block_.kernel->name.c_str(), block_.index.x, block_.index.y,
                 block_.index.z);
}

void AccessCheck::find_race(const Access& access, const Step& other, bool other_wrote, uint32_t offset) {
  const auto place = static_cast<uint32_t>(&access.op - access.warp.code);
  const auto text = [&] {
    const Warp& warp = block_.warps[other.thread / kLanes];
    return stringf("race on shared memory at 0x%x: %s: %s %s (%s), %s %s (%s), and nothing orders the two", offset,
                   block_name().c_str(), thread_name(access.warp, access.lane).c_str(),
                   access.write ? "writes" : "reads", where(place).c_str(),
                   thread_name(warp, other.thread % kLanes).c_str(), other_wrote ? "wrote" : "read",
                   where(other.place).c_str());
  };
  checks_.log.find(CheckLog::Kind::kRace, block_.kernel->name, access.op.line, access.warp.code[other.place].line,
                   text);
}

// Beside device memory there are a launch's parameters, which a kernel may read by their addresses.
void AccessCheck::find_undeclared(const Access& access) {
  const DeclaredAccess& declared = *block_.launch.declared;
  const bool read = access.read && !declared.permits_read(access.host, access.bytes);
  const bool write = access.write && !declared.permits_write(access.host, access.bytes);
  if ((!read && !write) || !block_.memory->contains(access.host, access.bytes)) return;
  const auto text = [&] {
    return stringf(
        "undeclared %s of global memory at 0x%llx: %s: %s accesses %u bytes (%s) of a buffer that none of the "
        "launch's parameters leads to",
        write ? "write" : "read", static_cast<unsigned long long>(access.host), block_name().c_str(),
        thread_name(access.warp, access.lane).c_str(), access.bytes,
        where(static_cast<uint32_t>(&access.op - access.warp.code)).c_str());
  };
  const auto kind = write ? CheckLog::Kind::kUndeclaredWrite : CheckLog::Kind::kUndeclaredRead;
  checks_.log.find(kind, block_.kernel->name, access.op.line, 0, text);
}

void AccessCheck::find_uninitialised(const Access& access, const char* space, uint64_t address) {
  const auto place = static_cast<uint32_t>(&access.op - access.warp.code);
  const auto text = [&] {
    return stringf("uninitialised %s memory at 0x%llx: %s: %s reads %u bytes (%s) that nobody wrote", space,
                   static_cast<unsigned long long>(address), block_name().c_str(),
                   thread_name(access.warp, access.lane).c_str(), access.bytes, where(place).c_str());
  };
  checks_.log.find(CheckLog::Kind::kUninitialised, block_.kernel->name, access.op.line, 0, text);
}

}  // namespace heddle::software
