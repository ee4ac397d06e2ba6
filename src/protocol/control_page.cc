#include "protocol/control_page.h"

#include <algorithm>
#include <cstring>

#include "protocol/ring.h"

namespace heddle::protocol {
namespace {

constexpr uint32_t kControlMagic = 0x43444c48;  // "HLDC"
// A worker publishes about once a microsecond at most, and a look takes a tenth of that.
constexpr int kMostLooks = 64;

}  // namespace

Result<std::pair<Fd, ControlPage>> ControlPage::create(Bytes undo, Duration long_from, uint32_t save_permille) {
  static_assert(sizeof(Layout) <= kBytes.value && std::is_trivially_copyable_v<Usage>);
  auto fd = create_memfd("heddle-control", Bytes{kMemoryBytes.value + undo.value});
  if (!fd) return tl::unexpected(std::move(fd).error());
  auto mapping = map_shared(*fd, kBytes);
  if (!mapping) return tl::unexpected(std::move(mapping).error());
  auto* layout = static_cast<Layout*>(mapping->data());  // zeros, of which only what is used costs memory
  layout->magic = kControlMagic;
  layout->version = kProtocolVersion;
  layout->long_from_ns.store(static_cast<uint64_t>(long_from.count()), std::memory_order_relaxed);
  layout->save_permille.store(save_permille, std::memory_order_relaxed);
  ControlPage page;
  page.mapping_ = std::move(*mapping);
  return std::pair(std::move(*fd), std::move(page));
}

Result<ControlPage> ControlPage::attach(const Fd& fd) {
  const auto size = sealed_size(fd);
  if (!size) return tl::unexpected(size.error());
  if (size->value < kMemoryBytes.value)
    return fail(ErrorCode::kProtocol, "a control page of %lu bytes where %lu are due at least",
                static_cast<unsigned long>(size->value), static_cast<unsigned long>(kMemoryBytes.value));
  auto mapping = map_shared(fd, kBytes);
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

// `task` names the new one last: a worker that dies in here has begun none.
void ControlPage::begin_task(uint64_t serial, bool fresh) {
  Layout& page = layout();
  page.task.store(0, std::memory_order_release);
  for (std::atomic<uint64_t>* word : {&page.ended, &page.unmapped, &page.reset, &page.freed})
    word->store(0, std::memory_order_release);
  if (fresh) {
    for (std::atomic<uint64_t>* word : {&page.obstacle, &page.modules, &page.affected, &page.variables_written})
      word->store(0, std::memory_order_release);
    Cut cut = log();
    cut.variables_saved = 0;
    note_cut(cut);
  }
  page.task.store(serial, std::memory_order_release);
}

void ControlPage::note_obstacle(Obstacle obstacle) {
  layout().obstacle.store(static_cast<uint64_t>(obstacle), std::memory_order_release);
}

bool ControlPage::note_module(const LoadedModule& module) {
  const uint64_t index = layout().modules.load(std::memory_order_relaxed);
  if (index >= kMostModules) return false;
  layout().module_ids[index].store(module.module, std::memory_order_relaxed);
  layout().module_addresses[index].store(module.addresses, std::memory_order_relaxed);
  layout().modules.store(index + 1, std::memory_order_release);
  return true;
}

LoadedModule ControlPage::module(uint64_t index) const {
  return {static_cast<uint32_t>(layout().module_ids[index % kMostModules].load(std::memory_order_relaxed)),
          layout().module_addresses[index % kMostModules].load(std::memory_order_relaxed)};
}

void ControlPage::note_freed(uint64_t number) {
  const uint64_t index = layout().freed.load(std::memory_order_relaxed);
  layout().freed_numbers[index % kFreedNumbers].store(number, std::memory_order_relaxed);
  layout().freed.store(index + 1, std::memory_order_release);
}

// One more than the sequence: 0 says that it has not ended.
void ControlPage::note_end(uint64_t sequence, bool unmapped) {
  layout().unmapped.store(unmapped, std::memory_order_release);
  layout().ended.store(sequence + 1, std::memory_order_release);
}

void ControlPage::note_cut(const Cut& cut) {
  const uint64_t next = layout().cut.load(std::memory_order_relaxed) + 1;
  CutWords& words = layout().cuts[next & 1];
  words.completed.store(cut.completed, std::memory_order_release);
  words.record_head.store(cut.record_head, std::memory_order_release);
  words.variables_saved.store(cut.variables_saved, std::memory_order_release);
  words.print_tail.store(cut.printed.tail, std::memory_order_release);
  words.print_lost.store(cut.printed.lost, std::memory_order_release);
  words.streams.store(cut.streams.size(), std::memory_order_release);
  StreamCutWords* streams = layout().stream_cuts[next & 1];
  for (const StreamCuts::Cut& each : cut.streams) {
    streams->stream.store(each.stream, std::memory_order_release);
    streams->sequence.store(each.sequence, std::memory_order_release);
    ++streams;
  }
  layout().cut.store(next, std::memory_order_release);
}

void ControlPage::read_cut(uint64_t number, Cut& cut) const {
  const CutWords& words = layout().cuts[number & 1];
  cut.completed = words.completed.load(std::memory_order_acquire);
  cut.record_head = words.record_head.load(std::memory_order_acquire);
  cut.variables_saved = words.variables_saved.load(std::memory_order_acquire);
  cut.printed.tail = words.print_tail.load(std::memory_order_acquire);
  cut.printed.lost = words.print_lost.load(std::memory_order_acquire);
  cut.streams.clear();
  const uint64_t streams = std::min<uint64_t>(words.streams.load(std::memory_order_acquire), StreamCuts::kMost);
  for (uint64_t index = 0; index < streams; ++index) {
    const StreamCutWords& each = layout().stream_cuts[number & 1][index];
    const auto stream = static_cast<uint32_t>(each.stream.load(std::memory_order_acquire));
    if (stream < kMaxStreams) cut.streams.raise({stream, each.sequence.load(std::memory_order_acquire)});
  }
}

// What is done is read before what was handed over: of a worker at work, rather too much is under way than too little.
LogState ControlPage::log() const {
  const Layout& page = layout();
  LogState log;
  for (int look = 0; look < kMostLooks; ++look) {
    const uint64_t number = page.cut.load(std::memory_order_acquire);
    read_cut(number, log);
    if (page.cut.load(std::memory_order_relaxed) == number) break;
  }
  log.done = page.done.load(std::memory_order_acquire);
  log.shown = page.shown.load(std::memory_order_acquire);
  log.variables_written = page.variables_written.load(std::memory_order_acquire);
  log.affected = page.affected.load(std::memory_order_acquire);
  log.handed_over = page.handed_over.load(std::memory_order_acquire);
  log.task = page.task.load(std::memory_order_acquire);
  const uint64_t ended = page.ended.load(std::memory_order_acquire);
  log.ended = ended != 0 && ended - 1 <= log.completed;
  log.unmapped = page.unmapped.load(std::memory_order_acquire) != 0;
  log.reset = page.reset.load(std::memory_order_acquire) != 0;
  log.obstacle = static_cast<Obstacle>(page.obstacle.load(std::memory_order_acquire));
  log.freed = page.freed.load(std::memory_order_acquire);
  log.modules = std::min(page.modules.load(std::memory_order_acquire), kMostModules);
  return log;
}

}  // namespace heddle::protocol
