#include "protocol/control_page.h"

#include <cstring>
#include <new>

#include "protocol/ring.h"

namespace heddle::protocol {
namespace {

constexpr uint32_t kControlMagic = 0x43444c48;  // "HLDC"
constexpr Bytes kPageBytes{4096};
// A worker publishes about once a microsecond at most, and a look takes a tenth of that.
constexpr int kMostLooks = 64;

}  // namespace

Result<std::pair<Fd, ControlPage>> ControlPage::create() {
  static_assert(sizeof(Layout) <= kPageBytes.value && std::is_trivially_copyable_v<Usage>);
  auto fd = create_memfd("heddle-control", kPageBytes);
  if (!fd) return tl::unexpected(std::move(fd).error());
  auto mapping = map_shared(*fd, kPageBytes);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  auto* layout = new (mapping->data()) Layout{};
  layout->magic = kControlMagic;
  layout->version = kProtocolVersion;
  ControlPage page;
  page.mapping_ = std::move(*mapping);
  return std::pair(std::move(*fd), std::move(page));
}

Result<ControlPage> ControlPage::attach(const Fd& fd) {
  const auto size = sealed_size(fd);
  if (!size) return tl::unexpected(size.error());
  if (size->value != kPageBytes.value)
    return fail(ErrorCode::kProtocol, "a control page of %lu bytes where %lu are due",
                static_cast<unsigned long>(size->value), static_cast<unsigned long>(kPageBytes.value));
  auto mapping = map_shared(fd, kPageBytes);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  ControlPage page;
  page.mapping_ = std::move(*mapping);
  const Layout& layout = page.layout();
  if (layout.magic != kControlMagic || layout.version != kProtocolVersion)
    return fail(ErrorCode::kProtocol, "not a control page of protocol version %u (magic %#x, version %u)",
                kProtocolVersion, layout.magic, layout.version);
  return page;
}

// Each store is a release: none of the slot overtakes the number before it, and the number none of the slot.
void ControlPage::publish(const Usage& usage) {
  uint64_t words[kWords];
  std::memcpy(words, &usage, sizeof words);
  const uint64_t next = layout().published.load(std::memory_order_relaxed) + 1;
  Slot& slot = layout().slots[next & 1];
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  layout().published.store(next, std::memory_order_release);
}

bool ControlPage::read(Usage& usage) const {
  for (int look = 0; look < kMostLooks; ++look) {
    const uint64_t number = layout().published.load(std::memory_order_acquire);
    const Slot& slot = layout().slots[number & 1];
    uint64_t words[kWords];
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    // The slot is written anew only after the next number was published.
    if (layout().published.load(std::memory_order_relaxed) != number) continue;
    std::memcpy(&usage, words, sizeof words);
    return true;
  }
  return false;
}

}  // namespace heddle::protocol
