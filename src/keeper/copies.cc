#include "keeper/copies.h"

#include <algorithm>

#include "protocol/socket.h"

namespace heddle::keeper {
namespace {

using protocol::CopyMemory;
using protocol::MemoryCopied;
using protocol::PeerEnd;

MemoryCopied answer(uint64_t copy, const Status& status) {
  MemoryCopied answer;
  answer.copy = copy;
  if (status) return answer;
  answer.error = static_cast<uint32_t>(status.error().code);
  protocol::set_text(answer.text, status.error().text);
  return answer;
}

// heddled has checked what a program said; this keeps an error of heddled's from becoming another program's.
Status check_end(const CopyMemory& wanted, const PeerEnd& end, uint64_t bytes) {
  uint64_t rows, slices, last;
  const bool wraps = __builtin_mul_overflow(wanted.height - 1, end.pitch, &rows) ||
                     __builtin_mul_overflow(wanted.depth - 1, end.slice, &slices) ||
                     __builtin_add_overflow(rows, slices, &last) || __builtin_add_overflow(last, wanted.width, &last) ||
                     __builtin_add_overflow(last, end.address, &last);
  if (wanted.width != 0 && wanted.height != 0 && wanted.depth != 0 && !wraps && last <= bytes) return {};
  return fail(ErrorCode::kInvalidArgument,
              "%llu x %llu x %llu bytes at offset %llu do not lie in a segment of %llu bytes",
              static_cast<unsigned long long>(wanted.width), static_cast<unsigned long long>(wanted.height),
              static_cast<unsigned long long>(wanted.depth), static_cast<unsigned long long>(end.address),
              static_cast<unsigned long long>(bytes));
}

device::CopyEnd end_in(const cuda::Allocator::Attached& memory, const PeerEnd& end) {
  return {memory.address() + end.address, end.pitch, end.slice};
}

}  // namespace

Result<Copies::Copy> Copies::attach(const CopyMemory& wanted, const std::vector<Fd>& descriptors) {
  if (descriptors.size() != 2)
    return fail(ErrorCode::kInvalidArgument, "a copy with %zu descriptors: two are wanted", descriptors.size());
  HEDDLE_TRY(check_end(wanted, wanted.to, wanted.to_bytes));
  HEDDLE_TRY(check_end(wanted, wanted.from, wanted.from_bytes));
  auto to = mappings_.map(wanted.to_mapping, descriptors[0], Bytes{wanted.to_bytes});
  if (!to) return tl::unexpected(std::move(to).error());
  auto from = mappings_.map(wanted.from_mapping, descriptors[1], Bytes{wanted.from_bytes});
  if (!from)
    return fail(from.error().code, "the other GPU's memory cannot be reached from this one: %s",
                from.error().text.c_str());
  const device::CopyShape shape{end_in(**to, wanted.to), end_in(**from, wanted.from), wanted.width, wanted.height,
                                wanted.depth};
  return Copy{wanted.copy, std::move(*to), std::move(*from), Parts(shape)};
}

std::optional<MemoryCopied> Copies::begin(const CopyMemory& wanted, const std::vector<Fd>& descriptors) {
  auto copy = attach(wanted, descriptors);
  if (!copy) return answer(wanted.copy, tl::unexpected(copy.error()));
  copies_.push_back(std::move(*copy));
  return std::nullopt;
}

std::optional<MemoryCopied> Copies::cancel(uint64_t number) {
  const auto found =
      std::find_if(copies_.begin(), copies_.end(), [&](const Copy& each) { return each.number == number; });
  if (found == copies_.end()) return std::nullopt;  // answered already
  copies_.erase(found);
  return answer(number, fail(ErrorCode::kCancelled, "the copy was cancelled"));
}

Result<std::optional<MemoryCopied>> Copies::step() {
  Copy& copy = copies_.front();
  const auto part = copy.parts.next();
  const Status done = part ? allocator_.copy(*part) : Status{};
  if (!done && done.error().code == ErrorCode::kDeviceFault) return tl::unexpected(done.error());
  if (part && done) {
    copies_.splice(copies_.end(), copies_, copies_.begin());  // the next one's turn
    return std::optional<MemoryCopied>();
  }
  const MemoryCopied result = answer(copy.number, done);
  copies_.pop_front();  // what is not kept is not mapped any more when heddled hears of it
  return std::optional(result);
}

}  // namespace heddle::keeper
