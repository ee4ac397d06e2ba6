// Random programs against a model of what they must compute.

#include <algorithm>
#include <map>
#include <random>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;

constexpr uint32_t kAppend = 0;  // the kernel
constexpr uint32_t kStreams = 6, kCells = 16;

// Each cell belongs to one stream and is a hash chain: cell = cell * prime + value. Any record that is lost, doubled
// or out of its stream's order shows in it.
struct RandomProgram : SessionHarness, ::testing::WithParamInterface<unsigned> {
  void SetUp() override {
    SessionHarness::SetUp();
    module_info.kernels.resize(1);
    module_info.kernels[kAppend].name = "append";
    module_info.kernels[kAppend].parameter_bytes = 16;
    prepare_context = [](FakeContext& device) {
      device.kernels["append"] = [](std::span<const std::byte> parameters) {
        uint64_t words[2];
        std::memcpy(words, parameters.data(), sizeof words);
        auto* cell = reinterpret_cast<uint64_t*>(words[0]);  // NOLINT(performance-no-int-to-ptr)
        *cell = chain(*cell, words[1]);
        return 0u;
      };
    };
    start_worker();
    send_module(1);
    for (uint32_t index = 1; index < kStreams; ++index)
      live_stream(index, index % 2 ? protocol::kStreamNonBlocking : 0);
    map(1, kTestBase);
    simple(RecordType::kNeed, 0, 1);
  }
  static uint64_t chain(uint64_t cell, uint64_t value) { return cell * 1099511628211u + value; }
  static uint64_t address(uint32_t index) { return kTestBase + 8 * (index * kCells); }

  void append(uint32_t index, uint64_t value) {
    while (launch(index, kAppend, {address(index), value}) == 0) {
      for (uint32_t other = 0; other < kStreams; ++other) context->resume(other);
      ASSERT_TRUE(eventually([this] { return header().committed.load() == writer->last_sequence(); }));
    }
    expected[index] = chain(expected[index], value);
  }
  void return_from_host_calls() {
    for (uint32_t index = 0; index < kStreams; ++index) stream(index).host_done = stream(index).host_reached.load();
    protocol::ring_bell(header().to_worker);
  }
  std::map<uint32_t, uint64_t> expected;
};

TEST_P(RandomProgram, ComputesWhatItsStreamsOrderSays) {
  std::mt19937 random(GetParam());
  uint64_t event = 0;
  for (int step = 0; step < 3000; ++step) {
    const uint32_t index = random() % kStreams;
    switch (random() % 10) {
      case 0:
        context->pause(index);
        break;
      case 1:
        context->resume(index);
        break;
      case 2:
        event = simple(RecordType::kEventRecord, index, random() % 4);
        break;
      case 3:
        if (event) simple(RecordType::kEventWait, index, 0, event);
        break;
      case 4:
        marker(index);
        break;
      default:
        append(index, random());
    }
    // A full ring is waited for inside simple() and append(): nothing may be paused for ever.
    if (writer->last_sequence() - header().committed.load() > 400) {
      for (uint32_t other = 0; other < kStreams; ++other) context->resume(other);
    }
    if (HasFatalFailure()) return;
  }
  for (uint32_t index = 0; index < kStreams; ++index) context->resume(index);
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  for (const auto& [index, value] : expected) {
    uint64_t found;
    std::memcpy(&found, device_text(address(index), 8).data(), 8);
    EXPECT_EQ(found, value) << "stream " << index;
  }
}

TEST_P(RandomProgram, SegmentsAndHostCallsComeAndGo) {
  std::mt19937 random(GetParam());
  uint64_t number = 1;
  for (int step = 0; step < 300; ++step) {
    const uint32_t index = random() % kStreams;
    append(index, random());
    const uint64_t place = kTestBase + (1 + step % 8) * kSegmentBytes;
    map(++number, place);
    simple(RecordType::kNeed, 0, number);
    fill(index, place, 4096, 1);
    if (step % 3 == 0) simple(RecordType::kHostCall, index);
    // The address is used again eight steps later: only once its free is committed.
    const uint64_t free = simple(RecordType::kFree, 0, number);
    append(index, random());
    ASSERT_TRUE(eventually([&] {
      return_from_host_calls();
      return step % 8 != 7 || header().committed.load() >= free;
    }));
  }
  ASSERT_TRUE(eventually([&] {
    return_from_host_calls();
    return header().committed.load() == writer->last_sequence();
  }));
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  EXPECT_EQ(told<protocol::SegmentFreed>(), 300u);
  for (const auto& [index, value] : expected) {
    uint64_t found;
    std::memcpy(&found, device_text(address(index), 8).data(), 8);
    EXPECT_EQ(found, value) << "stream " << index;
  }
}

TEST_P(RandomProgram, GarbageInTheRingIsAFaultAndNeverACrash) {
  std::mt19937_64 random(GetParam());
  for (int round = 0; round < 60; ++round) {
    ASSERT_TRUE(completes(writer->last_sequence()));
    for (char& byte : ring.records()) byte = static_cast<char>(random() % (round % 2 ? 256 : 4));
    auto* record = reinterpret_cast<protocol::RecordHeader*>(ring.records().data());
    for (uint32_t n = 0; n < 8; ++n) {  // eight records of a plausible kind, with nonsense in them
      auto* next = reinterpret_cast<protocol::RecordHeader*>(reinterpret_cast<char*>(record) + n * 256);
      next->type = static_cast<RecordType>(2 + random() % 12);
      next->bytes = 256;
      next->sequence = n + 1;
      next->stream = static_cast<uint32_t>(random() % kStreams);
    }
    header().committed = header().completed = 0;
    header().record_head = 0;
    control_page.note_cut({0, 0, 0});
    header().record_tail = 8 * 256;
    header().fault = 0;
    start_worker();
    send_module(1);
    fail_device(700, "the round is over");  // nothing may be waited for after this
    ASSERT_TRUE(eventually([&] { return header().fault.load() != 0; }));
    writer = std::make_unique<protocol::RingWriter>(ring);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgram, ::testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace heddle::worker
