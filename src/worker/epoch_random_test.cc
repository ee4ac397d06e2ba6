// Random programs whose workers die at random moments at which their work can be run again.

#include <array>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

constexpr uint32_t kStreams = 3, kCells = 8, kBuffers = 12;
constexpr uint64_t kPlace = 64 * kKiB;  // of a buffer

// Each cell belongs to one stream. The second segment has cells of all of them, and nothing else is known of it; the
// first has buffers, each of a stream, that are freed behind their work and make place for others.
struct RandomDeaths : EpochHarness, ::testing::WithParamInterface<std::tuple<unsigned, int>> {
  void SetUp() override {
    long_from = std::chrono::milliseconds(std::get<1>(GetParam()));
    EpochHarness::SetUp();
    table().share({kFirst, kFirst + kSegmentBytes});
    for (uint32_t i = 0; i < kBuffers; ++i) allocate(i);
  }
  static uint32_t stream_of(uint32_t buffer) { return buffer % kStreams; }
  void allocate(uint32_t index) {
    Buffer& buffer = buffers[index];
    const uint64_t offset = 512 * (random() % 8);
    buffer = {kFirst + index * kPlace + offset, 8 + random() % (kPlace - offset - 8), std::nullopt};
    table().add(buffer.address, buffer.bytes);
    fill(stream_of(index), buffer.address, buffer.bytes, 0);
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
    if (buffer.freed || random() % 2) return kSecond + 64 * (stream * kCells + random() % kCells);
    return buffer.address + 8 * (random() % std::min<uint64_t>(buffer.bytes / 8, kCells));
  }
  void add(uint32_t stream) {
    constexpr EpochKernel kKernels[] = {kAdd, kAdd, kAdd, kLongAdd, kVeryLong};
    const uint64_t cell = draw_cell(stream);
    const uint64_t value = random() % 1000;
    run(kKernels[random() % std::size(kKernels)], cell, value, stream);
    expected[cell] += value;
  }
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
    start();
    return true;
  }

  struct Buffer {
    uint64_t address = 0, bytes = 0;
    std::optional<uint64_t> freed;  // behind that record
  };

  std::mt19937 random{std::get<0>(GetParam())};
  std::array<Buffer, kBuffers> buffers;
  std::map<uint64_t, uint64_t> expected;
  int deaths = 0, in_work = 0, replaced = 0;
};

TEST_P(RandomDeaths, LeaveWhatOneRunWould) {
  for (int step = 0; step < 400; ++step) {
    const uint32_t stream = random() % kStreams;
    switch (random() % 14) {
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
        header().wanted = writer->last_sequence();
        marker(stream);
        break;
      case 4:
      case 5:
        free(random() % kBuffers);
        replace_freed();
        break;
      default:
        add(stream);
    }
  }
  resume_all();
  ASSERT_TRUE(completes(marker()));  // the last worker has its memory mapped, too
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  for (const auto& [cell, value] : expected) EXPECT_EQ(at(cell), value) << "after " << deaths << " deaths";
  std::printf("%d deaths, %d of them in the middle of work; %d buffers were replaced\n", deaths, in_work, replaced);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeaths, ::testing::Combine(::testing::Range(1u, 9u), ::testing::Values(0, 5)));

}  // namespace
}  // namespace heddle::worker
