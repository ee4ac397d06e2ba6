#include "protocol/saved_variables.h"

#include <atomic>

#include "protocol/control_page.h"

namespace heddle::protocol {

struct SavedVariables::Head {
  std::atomic<uint64_t> number;      // of the area that was filled last: `number & 1`; 0: none was
  std::atomic<uint64_t> modules[2];  // in either
};

Result<SavedVariables> SavedVariables::attach(const Fd& fd) {
  const Bytes whole = ControlPage::kMemoryBytes;
  const auto size = sealed_size(fd);
  if (!size) return tl::unexpected(size.error());
  if (size->value != whole.value)
    return fail(ErrorCode::kProtocol, "a control page of %lu bytes where %lu are due",
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

uint64_t SavedVariables::number() const {
  return head().number.load(std::memory_order_acquire);
}

uint64_t SavedVariables::modules() const {
  return head().modules[number() & 1].load(std::memory_order_acquire);
}

void SavedVariables::publish(uint64_t modules) {
  const uint64_t next = number() + 1;
  head().modules[next & 1].store(modules, std::memory_order_release);
  head().number.store(next, std::memory_order_release);
}

std::span<std::byte> SavedVariables::area(uint64_t number) const {
  constexpr uint64_t bytes = ControlPage::kVariableBytes.value;
  std::byte* first = reinterpret_cast<std::byte*>(&head()) + 4 * kKiB;
  return {first + (number & 1) * bytes, bytes};
}

}  // namespace heddle::protocol
