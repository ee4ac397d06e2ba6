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
// Of an area there are no more pieces than kMostPieces: each may cost an entry.
constexpr uint64_t kLeastPieceBytes = 8 * kMiB, kMostPieces = 1024;

}  // namespace

struct UndoLog::Entry {
  std::atomic<uint64_t> sequence;  // 0: it does not count
  std::atomic<uint64_t> segment, offset, bytes, place;
  std::atomic<uint64_t> stamp;    // its sequence, once it and those before it of its record are made
  std::atomic<uint64_t> stamped;  // index of the entry of its record whose stamp says so: the last one
  std::atomic<uint64_t> stream;
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
  log.piece_bytes_ = std::max(kLeastPieceBytes, round_up(log.area_bytes_ / kMostPieces, kLeastPieceBytes));
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

bool UndoLog::has_room(uint64_t parts, uint64_t bytes) const {
  const uint64_t entries = kMostEntries - count(), space = area_bytes_ - used_;
  const uint64_t padding = parts * kAlignment;
  if (parts > entries || padding > space || bytes > space - padding) return false;
  // A part that begins in one piece and ends in another has an entry in each.
  const uint64_t divided = (used_ + padding + bytes) / piece_bytes_ - used_ / piece_bytes_;
  return divided <= entries - parts;
}

uint64_t UndoLog::left_in_piece() const {
  return piece_bytes_ - used_ % piece_bytes_;
}

std::vector<UndoLog::Copy> UndoLog::add(uint64_t sequence, uint32_t stream, std::span<const Part> parts) {
  std::vector<Copy> copies;
  for (const Part& part : parts) {
    for (uint64_t done = 0; done < part.bytes;) {
      const uint64_t bytes = std::min(part.bytes - done, left_in_piece());
      copies.push_back({{part.segment, part.offset + done, bytes}, {area() + used_, bytes}});
      done += bytes;
      used_ = round_up(used_ + bytes, kAlignment);
    }
  }
  const uint64_t first = count();
  for (uint64_t index = 0; index < copies.size(); ++index) {
    Entry& added = entry(first + index);
    const auto& [from, to] = copies[index];
    const std::pair<std::atomic<uint64_t>*, uint64_t> words[] = {{&added.stamp, 0},
                                                                 {&added.stamped, first + copies.size() - 1},
                                                                 {&added.stream, stream},
                                                                 {&added.segment, from.segment},
                                                                 {&added.offset, from.offset},
                                                                 {&added.bytes, from.bytes},
                                                                 {&added.place, to.data() - area()},
                                                                 {&added.sequence, sequence}};
    for (const auto& [word, value] : words) word->store(value, std::memory_order_relaxed);
  }
  head().count.store(first + copies.size(), std::memory_order_release);
  return copies;
}

UndoLog::Stamp UndoLog::stamp() const {
  Entry& last = entry(count() - 1);
  return {&last.sequence, &last.stamp};
}

std::vector<std::span<std::byte>> UndoLog::pieces() const {
  std::vector<std::span<std::byte>> pieces;
  for (uint64_t at = 0; at < area_bytes_; at += piece_bytes_)
    pieces.emplace_back(area() + at, std::min(piece_bytes_, area_bytes_ - at));
  return pieces;
}

void UndoLog::trim() {
  if (area_bytes_ != 0) (void)::madvise(area(), area_bytes_, MADV_REMOVE);
}

// What is written behind the new count is of another record: `count` goes first.
void UndoLog::forget_last(const std::function<bool(uint32_t, uint64_t)>& is_committed) {
  uint64_t left = count();
  for (; left > 0; --left) {
    const Entry& last = entry(left - 1);
    if (!is_committed(static_cast<uint32_t>(last.stream.load(std::memory_order_relaxed)),
                      last.sequence.load(std::memory_order_relaxed)))
      break;
  }
  if (left == count()) return;
  head().count.store(left, std::memory_order_seq_cst);
  used_ = 0;
  if (left == 0) return;
  const Entry& last = entry(left - 1);
  used_ = round_up(last.place.load(std::memory_order_relaxed) + last.bytes.load(std::memory_order_relaxed), kAlignment);
}

std::vector<UndoEntry> UndoLog::left(uint64_t completed, const StreamCuts& streams) {
  std::vector<UndoEntry> counting;
  for (uint64_t index = 0; index < count(); ++index) {
    Entry& each = entry(index);
    const UndoEntry entry{each.sequence.load(std::memory_order_acquire),
                          static_cast<uint32_t>(each.stream.load(std::memory_order_relaxed)),
                          each.segment.load(std::memory_order_relaxed),
                          each.offset.load(std::memory_order_relaxed),
                          each.bytes.load(std::memory_order_relaxed),
                          each.place.load(std::memory_order_relaxed)};
    if (entry.sequence == 0) continue;
    const uint64_t last = each.stamped.load(std::memory_order_relaxed);
    const bool stamped = last < count() && this->entry(last).stamp.load(std::memory_order_acquire) == entry.sequence;
    const bool sound = entry.place <= area_bytes_ && entry.bytes <= area_bytes_ - entry.place;
    if (stamped && sound && entry.sequence > std::max(completed, streams.of(entry.stream))) {
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
