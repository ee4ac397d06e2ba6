#include "protocol/saved_variables.h"

#include <atomic>

#include "protocol/control_page.h"

namespace heddle::protocol {

struct SavedVariables::Head {
  std::atomic<uint64_t> modules[2], sequences[2];  // in either area; sequence 0: it holds nothing
};

Result<SavedVariables> SavedVariables::attach(const Fd& fd) {
  const Bytes whole = ControlPage::kMemoryBytes;
  const auto size = sealed_size(fd);
  if (!size) return tl::unexpected(size.error());
  if (size->value < whole.value)
    return fail(ErrorCode::kProtocol, "a control page of %lu bytes where %lu are due at least",
                static_cast<unsigned long>(size->value), static_cast<unsigned long>(whole.value));
  auto mapping = map_shared(fd, whole);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  SavedVariables saved;
  saved.mapping_ = std::move(*mapping);
  return saved;
}

SavedVariables::Head& SavedVariables::head() const {
  return *reinterpret_cast<Head*>(static_cast<std::byte*>(mapping_.data()) + ControlPage::kBytes.value);
}

size_t SavedVariables::other_than(uint64_t counts) const {
  return counts != 0 && head().sequences[0].load(std::memory_order_acquire) == counts ? 1 : 0;
}

std::span<std::byte> SavedVariables::begin(uint64_t counts) const {
  const size_t index = other_than(counts);
  head().sequences[index].store(0, std::memory_order_release);
  return area(index);
}

void SavedVariables::publish(uint64_t counts, uint64_t modules, uint64_t sequence) const {
  const size_t index = other_than(counts);
  head().modules[index].store(modules, std::memory_order_release);
  head().sequences[index].store(sequence, std::memory_order_release);
}

std::optional<SavedVariables::Saved> SavedVariables::at(uint64_t sequence) const {
  for (const size_t index : {0u, 1u}) {
    if (sequence != 0 && head().sequences[index].load(std::memory_order_acquire) == sequence)
      return Saved{area(index), head().modules[index].load(std::memory_order_acquire)};
  }
  return std::nullopt;
}

std::span<std::byte> SavedVariables::area(size_t index) const {
  constexpr uint64_t bytes = ControlPage::kVariableBytes.value;
  std::byte* first = reinterpret_cast<std::byte*>(&head()) + 4 * kKiB;
  return {first + index * bytes, bytes};
}

}  // namespace heddle::protocol
