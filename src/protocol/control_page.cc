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

// As publish(): the terms before their generation, and none of them before the generation that stood there last.
void ControlPage::write_lease(const Lease& lease) {
  Terms& terms = layout().terms[lease.generation & 1];
  const uint64_t before = layout().lease.load(std::memory_order_relaxed);
  if (before >> Lease::kGenerationShift != lease.generation) {
    terms.until_ns.store(lease.until_ns, std::memory_order_release);
    terms.window_ns.store(lease.window_ns, std::memory_order_release);
    terms.whole_bursts.store(lease.whole_bursts, std::memory_order_release);
  }
  layout().lease.store(lease.word(), std::memory_order_release);
}

bool ControlPage::read_lease(Lease& lease) const {
  for (int look = 0; look < kMostLooks; ++look) {
    const uint64_t word = layout().lease.load(std::memory_order_acquire);
    Lease read;
    read.state = static_cast<Lease::State>(word & Lease::kStateMask);
    read.wanted = (word & Lease::kWantedBit) != 0;
    read.generation = word >> Lease::kGenerationShift;
    if (read.generation > 0) {
      const Terms& terms = layout().terms[read.generation & 1];
      read.until_ns = terms.until_ns.load(std::memory_order_acquire);
      read.window_ns = terms.window_ns.load(std::memory_order_acquire);
      read.whole_bursts = terms.whole_bursts.load(std::memory_order_acquire) != 0;
    }
    if (lease_word() >> Lease::kGenerationShift != read.generation) continue;
    lease = read;
    return true;
  }
  return false;
}

}  // namespace heddle::protocol
