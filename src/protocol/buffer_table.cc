#include "protocol/buffer_table.h"

#include <algorithm>
#include <bit>

namespace heddle::protocol {
namespace {

using Word = std::atomic<uint64_t>;

constexpr uint64_t kBits = BufferTable::kWordBits;
constexpr uint64_t kShared = 1;

uint64_t load(const Word& word) {
  return word.load(std::memory_order_relaxed);
}

// There is one writer, so no read-modify-write is needed.
void set(Word* bits, uint64_t at) {
  Word& word = bits[at / kBits];
  word.store(load(word) | uint64_t{1} << at % kBits, std::memory_order_relaxed);
}
void clear(Word* bits, uint64_t at) {
  Word& word = bits[at / kBits];
  word.store(load(word) & ~(uint64_t{1} << at % kBits), std::memory_order_relaxed);
}

// The first bit of [from, to) that is set; `to` where none is.
uint64_t first_set(const Word* bits, uint64_t from, uint64_t to) {
  for (uint64_t at = from; at < to; at = (at / kBits + 1) * kBits) {
    const uint64_t left = load(bits[at / kBits]) >> at % kBits;
    if (left != 0) return std::min(to, at + static_cast<uint64_t>(std::countr_zero(left)));
  }
  return to;
}

// The last one.
std::optional<uint64_t> last_set(const Word* bits, uint64_t from, uint64_t to) {
  for (uint64_t end = to; end > from; end = (end - 1) / kBits * kBits) {
    const uint64_t word = (end - 1) / kBits;
    const uint64_t left = load(bits[word]) << (kBits - 1 - (end - 1) % kBits);
    if (left == 0) continue;
    const auto behind = static_cast<uint64_t>(std::countl_zero(left));
    if (end - from <= behind) return std::nullopt;
    return end - 1 - behind;
  }
  return std::nullopt;
}

}  // namespace

BufferTable::BufferTable(std::span<char> memory, uint64_t base)
    : words_(reinterpret_cast<Word*>(memory.data())),
      begins_(words_ + kSteps),
      ends_(begins_ + kUnits / kWordBits),
      base_(base) {}

// ---- Client ----

void BufferTable::own(uint64_t segment, uint64_t bytes) {
  if (covers({segment, segment + kStep})) words_[(segment - base_) / kStep].store(2 * bytes, std::memory_order_relaxed);
}

void BufferTable::share(Extent segment) {
  if (!covers(segment)) return;
  forget(segment.begin);
  const uint64_t begin = unit_of(segment.begin) / kBits, end = unit_of(segment.end) / kBits;
  for (Word* bits : {begins_, ends_})
    std::for_each(bits + begin, bits + end, [](Word& word) { word.store(0, std::memory_order_relaxed); });
  words_[(segment.begin - base_) / kStep].store(kShared, std::memory_order_relaxed);
}

void BufferTable::forget(uint64_t segment) {
  own(segment, 0);
}

void BufferTable::add(uint64_t address, uint64_t bytes) {
  if (!covers({address, address + bytes})) return;
  set(begins_, unit_of(address));
  set(ends_, unit_of(address + bytes - 1));
}

void BufferTable::remove(uint64_t address) {
  if (!covers({address, address + 1})) return;
  const uint64_t unit = unit_of(address), end = first_set(ends_, unit, std::min(unit + kMostShared / kUnit, kUnits));
  clear(begins_, unit);
  if (end < kUnits) clear(ends_, end);
}

// ---- Worker ----

bool BufferTable::covers(Extent segment) const {
  return words_ && segment.begin >= base_ && segment.begin <= segment.end && segment.end - base_ <= kSpan;
}

bool BufferTable::is_shared(Extent segment) const {
  return covers(segment) && segment.end - segment.begin <= kMostShared &&
         load(words_[(segment.begin - base_) / kStep]) == kShared;
}

// Of a segment that is not shared.
BufferTable::Extent BufferTable::only_one(Extent segment) const {
  if (!covers(segment)) return segment;
  const uint64_t bytes = load(words_[(segment.begin - base_) / kStep]) / 2, most = segment.end - segment.begin;
  return bytes == 0 || bytes >= most ? segment : Extent{segment.begin, segment.begin + round_up(bytes, kUnit)};
}

// Of a shared one, the buffer that begins in that unit. The next one's beginning is its end at the latest.
BufferTable::Extent BufferTable::from(Extent segment, uint64_t unit) const {
  const uint64_t end = unit_of(segment.end);
  const uint64_t last = first_set(ends_, unit, end), next = first_set(begins_, unit + 1, std::min(end, last + 1));
  return {address_of(unit), address_of(std::min(next, end))};
}

std::optional<BufferTable::Extent> BufferTable::at_or_before(Extent segment, uint64_t address) const {
  if (address < segment.begin) return std::nullopt;
  if (!is_shared(segment)) return only_one(segment);
  const uint64_t to = unit_of(std::min(address, segment.end - 1)) + 1;
  const auto found = last_set(begins_, unit_of(segment.begin), to);
  return found ? std::optional(from(segment, *found)) : std::nullopt;
}

std::optional<BufferTable::Extent> BufferTable::behind(Extent segment, uint64_t address) const {
  if (!is_shared(segment)) return address < segment.begin ? std::optional(only_one(segment)) : std::nullopt;
  if (address >= segment.end) return std::nullopt;
  const uint64_t from_unit = unit_of(address < segment.begin ? segment.begin : address + kUnit),
                 to = unit_of(segment.end);
  const uint64_t found = first_set(begins_, std::min(from_unit, to), to);
  return found < to ? std::optional(from(segment, found)) : std::nullopt;
}

}  // namespace heddle::protocol
