// Random programs whose workers die at random moments at which their work can be run again.

#include <map>
#include <random>
#include <thread>

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

constexpr uint32_t kStreams = 3, kCells = 8;

// Each cell belongs to one stream, and a segment has cells of all of them.
struct RandomDeaths : EpochHarness, ::testing::WithParamInterface<std::tuple<unsigned, int>> {
  void SetUp() override {
    long_from = std::chrono::milliseconds(std::get<1>(GetParam()));
    EpochHarness::SetUp();
  }
  void add(uint32_t stream) {
    constexpr EpochKernel kKernels[] = {kAdd, kAdd, kAdd, kLongAdd, kVeryLong};
    const uint64_t cell = (random() % 2 ? kFirst : kSecond) + 64 * (stream * kCells + random() % kCells);
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

  std::mt19937 random{std::get<0>(GetParam())};
  std::map<uint64_t, uint64_t> expected;
  int deaths = 0, in_work = 0;
};

TEST_P(RandomDeaths, LeaveWhatOneRunWould) {
  for (int step = 0; step < 400; ++step) {
    const uint32_t stream = random() % kStreams;
    switch (random() % 12) {
      case 0:
        if (stream != 0) context->pause(stream);  // a worker puts memory back on that one
        break;
      case 1:
        resume_all();
        break;
      case 2:
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
        if (!survives_death()) return;
        break;
      case 3:
        header().wanted = writer->last_sequence();
        marker(stream);
        break;
      default:
        add(stream);
    }
  }
  resume_all();
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  for (const auto& [cell, value] : expected) EXPECT_EQ(at(cell), value) << "after " << deaths << " deaths";
  std::printf("%d deaths, %d of them in the middle of work\n", deaths, in_work);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDeaths, ::testing::Combine(::testing::Range(1u, 9u), ::testing::Values(0, 5)));

}  // namespace
}  // namespace heddle::worker
