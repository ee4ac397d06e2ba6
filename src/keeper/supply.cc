#include "keeper/supply.h"

#include <thread>

namespace heddle::keeper {
namespace {

constexpr int kRetries = 20;
constexpr Duration kRetryAfter = std::chrono::milliseconds(5);

}  // namespace

Result<Fd> Supply::make(Bytes size) {
  if (auto memory = from_pool(size)) return std::move(*memory);
  auto memory = allocator_.allocate(size);
  for (int retries = 0; !memory && memory.error().code == ErrorCode::kOutOfMemory;) {
    // What was closed a moment ago is free when its last holder, another process, has closed it.
    if (pool_.release(size).value == 0) {
      if (retries++ == kRetries) break;
      std::this_thread::sleep_for(kRetryAfter);
    }
    memory = allocator_.allocate(size);
  }
  return memory;
}

std::optional<Fd> Supply::from_pool(Bytes size) {
  auto piece = pool_.take(size);
  // What cannot be cleared is the driver's again, with its descriptor.
  if (!piece || (!piece->cleared && !allocator_.clear(piece->memory, size))) return std::nullopt;
  return std::move(piece->memory);
}

void Supply::clear_one() {
  auto piece = pool_.take_uncleared();
  if (!piece || !allocator_.clear(piece->memory, piece->size)) return;
  piece->cleared = true;
  pool_.put(std::move(*piece));
}

void Supply::keep_at_most(Bytes most) {
  if (pool_.bytes() > most) pool_.release(pool_.bytes() - most);
}

Result<Bytes> Supply::left() {
  const auto usage = allocator_.usage();
  if (!usage) return tl::unexpected(usage.error());
  const Bytes kept = pool_.bytes();
  // What is given back is free then: half of the difference makes both equal.
  if (usage->free < kept) pool_.release(Bytes{(kept.value - usage->free.value + 1) / 2});
  return usage->free + kept;
}

}  // namespace heddle::keeper
