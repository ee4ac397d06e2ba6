// Random programs whose workers die at random moments at which their work can be run again.

#include <array>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

constexpr uint32_t kStreams = 4, kCells = 8, kBuffers = 12, kEvents = 6;
constexpr uint64_t kPlace = 64 * kKiB;  // of a buffer

// Each cell belongs to one stream. The second segment has cells of all of them, and nothing else is known of it; the
// first has buffers, each of a stream, that are freed behind their work and make place for others. Odd programs seldom
// touch the second one, so that their streams have little to do with each other. The last stream waits for the default
// stream.
struct RandomDeaths : EpochHarness, ::testing::WithParamInterface<std::tuple<unsigned, int>> {
  void SetUp() override {
    long_from = std::chrono::milliseconds(std::get<1>(GetParam()));
    EpochHarness::SetUp();
    live_stream(kStreams - 1);
    table().share({kFirst, kFirst + kSegmentBytes});
    for (uint32_t i = 0; i < kBuffers; ++i) allocate(i);
  }
  static bool stands_apart() { return std::get<0>(GetParam()) % 2 != 0; }
  static uint32_t stream_of(uint32_t buffer) { return buffer % kStreams; }
  void allocate(uint32_t index) {
    Buffer& buffer = buffers[index];
    const uint64_t offset = 512 * (random() % 8);
    buffer = {kFirst + index * kPlace + offset, 8 + random() % (kPlace - offset - 8), std::nullopt};
    table().add(buffer.address, buffer.bytes);
    last[stream_of(index)] = fill(stream_of(index), buffer.address, buffer.bytes, 0);
  }
  void free(uint32_t index) {
    if (!buffers[index].freed) buffers[index].freed = writer->last_sequence();
  }
  // A place is another's once all work that was called before its buffer's free is committed.
  void replace_freed() {
    for (uint32_t i = 0; i < kBuffers; ++i) {
      const Buffer& buffer = buffers[i];
      if (!buffer.freed || header().committed.load() < *buffer.freed) continue;
      table().remove(buffer.address);
      expected.erase(expected.lower_bound(buffer.address), expected.lower_bound(buffer.address + buffer.bytes));
      ++replaced;
      allocate(i);
    }
  }
  uint64_t draw_cell(uint32_t stream) {
    const Buffer& buffer = buffers[stream + kStreams * (random() % (kBuffers / kStreams))];
    if (buffer.freed || random() % (stands_apart() ? 64 : 2) == 0)
      return kSecond + 64 * (stream * kCells + random() % kCells);
    return buffer.address + 8 * (random() % std::min<uint64_t>(buffer.bytes / 8, kCells));
  }
  void add(uint32_t stream) {
    constexpr EpochKernel kKernels[] = {kAdd, kAdd, kAdd, kLongAdd, kVeryLong};
    const uint64_t cell = draw_cell(stream);
    const uint64_t value = random() % 1000;
    last[stream] = run(kKernels[random() % std::size(kKernels)], cell, value, stream);
    expected[cell] += value;
  }
  void waits_for(uint32_t stream, uint32_t other) {
    const uint32_t event = random() % kEvents;
    const uint64_t recorded = simple(protocol::RecordType::kEventRecord, other, event);
    last[stream] = simple(protocol::RecordType::kEventWait, stream, event, recorded);
  }
  // The stream takes over what the other one has in a cell, which goes on behind that.
  void take_over(uint32_t stream, uint32_t other) {
    const uint64_t from = draw_cell(other), to = draw_cell(stream);
    if (stream == other || from == to) return;
    waits_for(stream, other);
    last[stream] = run(kMove, from, to, stream);
    waits_for(other, stream);
    expected[to] = expected[from] + 1;
  }
  uint32_t owner_of(uint64_t cell) const {
    return static_cast<uint32_t>(cell >= kSecond ? (cell - kSecond) / 64 / kCells
                                                 : stream_of(static_cast<uint32_t>((cell - kFirst) / kPlace)));
  }
  // As a copy to the host does, for some time. What the program sees then stays.
  void wait_for(uint32_t index) {
    const uint64_t sequence = last[index] = marker(index);
    header().wanted = sequence;
    protocol::ring_bell(header().to_worker);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    while (stream(index).completed.load() < sequence && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (stream(index).completed.load() < sequence) return;
    ++waits;
    apart += control_page.log().streams.of(index) >= sequence;
    for (const auto& [cell, value] : expected) {
      if (owner_of(cell) != index || !memory_is_there()) continue;
      EXPECT_EQ(at(cell), value) << cell << " of stream " << index;
    }
  }
  // The next worker maps it before anything else that shows.
  bool memory_is_there() { return context->mapped().contains(kFirst) && context->mapped().contains(kSecond); }
  void resume_all() {
    for (uint32_t each = 0; each < kStreams; ++each) context->resume(each);
  }
  bool would_outlive() {
    const protocol::LogState log = control_page.log();
    return !log.computes() && log.variables_are_saved();
  }
  // False where its work was lost.
  bool survives_death() {
    if (!would_outlive()) return true;  // not now
    session.reset();
    if (!would_outlive()) return false;  // it has gone on in between
    ++deaths;
    in_work += control_page.log().under_way();
    behind_cuts += !control_page.log().streams.empty();
    start();
    return true;
  }

  struct Buffer {
    uint64_t address = 0, bytes = 0;
    std::optional<uint64_t> freed;  // behind that record
  };

  std::mt19937 random{std::get<0>(GetParam())};
  std::array<Buffer, kBuffers> buffers;
  std::array<uint64_t, kStreams> last{};  // record of each stream
  std::map<uint64_t, uint64_t> expected;
  int deaths = 0, in_work = 0, replaced = 0, waits = 0, apart = 0, behind_cuts = 0;
};

TEST_P(RandomDeaths, LeaveWhatOneRunWould) {
  for (int step = 0; step < 400; ++step) {
    const uint32_t stream = random() % kStreams;
    switch (random() % 20) {
      case 0:
        if (stream != 0) context->pause(stream);  // a worker puts memory back on that one
        break;
      case 1:
        resume_all();
        EXPECT_TRUE(random() % 4 != 0 || completes(writer->last_sequence()));
        break;
      case 2:
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        if (!survives_death()) return;
        break;
      case 3:
        if (!stands_apart()) header().wanted = writer->last_sequence();
        last[stream] = marker(stream);
        break;
      case 4:
      case 5:
        free(random() % kBuffers);
        replace_freed();
        break;
      case 6:
      case 7:
      case 8:
        wait_for(stream);
        break;
      case 9:
        if (!stands_apart() || random() % 4 == 0) take_over(stream, random() % kStreams);
        break;
      default:
        add(stream);
    }
  }
  resume_all();
  ASSERT_TRUE(completes(marker()));  // the last worker has its memory mapped, too
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  for (const auto& [cell, value] : expected) EXPECT_EQ(at(cell), value) << "after " << deaths << " deaths";
  std::printf(
      "%d deaths, %d of them in the middle of work, %d behind streams' cuts; %d buffers were replaced; %d waits, "
      "%d for a stream alone\n",
      deaths, in_work, behind_cuts, replaced, waits, apart);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeaths, ::testing::Combine(::testing::Range(1u, 13u), ::testing::Values(0, 5)));

}  // namespace
}  // namespace heddle::worker
