#include "protocol/undo_log.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "protocol/control_page.h"

namespace heddle::protocol {
namespace {

constexpr uint64_t kTable =
    ControlPage::kMemoryBytes.value - ControlPage::kUndoTableBytes.value;  // where it begins in the memfd
constexpr uint64_t kAlignment = 64;

}  // namespace

struct UndoLog::Entry {
  std::atomic<uint64_t> sequence;  // 0: it does not count
  std::atomic<uint64_t> segment, offset, bytes, place;
  std::atomic<uint64_t> stamp;    // its sequence, once it and those before it of its record are made
  std::atomic<uint64_t> stamped;  // index of the entry of its record whose stamp says so: the last one
  uint64_t unused;
};

struct UndoLog::Head {
  alignas(kAlignment) std::atomic<uint64_t> count;
};

Result<UndoLog> UndoLog::attach(const Fd& fd) {
  static_assert(sizeof(Head) + kMostEntries * sizeof(Entry) <= ControlPage::kUndoTableBytes.value);
  const auto size = sealed_size(fd);
  if (!size) return tl::unexpected(size.error());
  if (size->value < ControlPage::kMemoryBytes.value)
    return fail(ErrorCode::kProtocol, "a control page of %lu bytes where %lu are due at least",
                static_cast<unsigned long>(size->value), static_cast<unsigned long>(ControlPage::kMemoryBytes.value));
  auto mapping = map_shared(fd, *size);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  UndoLog log;
  log.mapping_ = std::move(*mapping);
  log.area_bytes_ = size->value - ControlPage::kMemoryBytes.value;
  return log;
}

UndoLog::Head& UndoLog::head() const {
  return *reinterpret_cast<Head*>(static_cast<std::byte*>(mapping_.data()) + kTable);
}

UndoLog::Entry& UndoLog::entry(uint64_t index) const {
  return reinterpret_cast<Entry*>(&head() + 1)[index];
}

std::byte* UndoLog::area() const {
  return static_cast<std::byte*>(mapping_.data()) + ControlPage::kMemoryBytes.value;
}

uint64_t UndoLog::count() const {
  return std::min(head().count.load(std::memory_order_acquire), kMostEntries);
}

uint64_t UndoLog::bytes() const {
  uint64_t sum = 0;
  for (uint64_t index = 0; index < count(); ++index) sum += entry(index).bytes.load(std::memory_order_relaxed);
  return sum;
}

void UndoLog::clear() {
  head().count.store(0, std::memory_order_release);
  used_ = 0;
}

bool UndoLog::has_room(uint64_t entries, uint64_t bytes) const {
  const uint64_t padding = entries * kAlignment;
  return entries <= kMostEntries - count() && padding <= area_bytes_ - used_ && bytes <= area_bytes_ - used_ - padding;
}

std::vector<std::span<std::byte>> UndoLog::add(uint64_t sequence, std::span<const Part> parts) {
  const uint64_t first = count();
  std::vector<std::span<std::byte>> places;
  for (uint64_t index = 0; index < parts.size(); ++index) {
    Entry& added = entry(first + index);
    const Part& part = parts[index];
    const std::pair<std::atomic<uint64_t>*, uint64_t> words[] = {{&added.stamp, 0},
                                                                 {&added.stamped, first + parts.size() - 1},
                                                                 {&added.segment, part.segment},
                                                                 {&added.offset, part.offset},
                                                                 {&added.bytes, part.bytes},
                                                                 {&added.place, used_},
                                                                 {&added.sequence, sequence}};
    for (const auto& [word, value] : words) word->store(value, std::memory_order_relaxed);
    places.emplace_back(area() + used_, part.bytes);
    used_ = round_up(used_ + part.bytes, kAlignment);
  }
  head().count.store(first + parts.size(), std::memory_order_release);
  return places;
}

UndoLog::Stamp UndoLog::stamp() const {
  Entry& last = entry(count() - 1);
  return {&last.sequence, &last.stamp};
}

void UndoLog::trim() {
  if (area_bytes_ != 0) (void)::madvise(area(), area_bytes_, MADV_REMOVE);
}

std::vector<UndoEntry> UndoLog::left(uint64_t completed) {
  std::vector<UndoEntry> counting;
  for (uint64_t index = 0; index < count(); ++index) {
    Entry& each = entry(index);
    const UndoEntry entry{each.sequence.load(std::memory_order_acquire), each.segment.load(std::memory_order_relaxed),
                          each.offset.load(std::memory_order_relaxed), each.bytes.load(std::memory_order_relaxed),
                          each.place.load(std::memory_order_relaxed)};
    if (entry.sequence == 0) continue;
    const uint64_t last = each.stamped.load(std::memory_order_relaxed);
    const bool stamped = last < count() && this->entry(last).stamp.load(std::memory_order_acquire) == entry.sequence;
    const bool sound = entry.place <= area_bytes_ && entry.bytes <= area_bytes_ - entry.place;
    if (stamped && sound && entry.sequence > completed) {
      counting.push_back(entry);
      used_ = std::max(used_, round_up(entry.place + entry.bytes, kAlignment));
    } else {
      each.sequence.store(0, std::memory_order_release);
    }
  }
  return counting;
}

std::span<std::byte> UndoLog::bytes_of(const UndoEntry& entry) const {
  return {area() + entry.place, entry.bytes};
}

}  // namespace heddle::protocol
