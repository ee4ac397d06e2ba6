// Workers that die in the middle of a program's work, where epochs are kept: the next one runs it again.

#include "worker/epoch.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;
using ::testing::HasSubstr;

constexpr uint64_t kFirst = kTestBase, kSecond = kTestBase + kSegmentBytes;
constexpr uint64_t kVariableAt = kTestBase + 4 * kSegmentBytes;  // where the worker has its variable
enum Kernel : uint32_t { kAdd, kMove, kWait, kTakeSlot, kCountUp, kUnknown, kPrint };

// Device memory is two segments of numbers, which every worker has mapped. Streams 1 and 2 wait for nobody else's.
struct EpochTest : SessionHarness {
  void SetUp() override {
    undo = Bytes{64 * kMiB};
    SessionHarness::SetUp();
    for (Fd& each : memory) each = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
    describe("add", {.read = 1, .written = 1});
    describe("move", {.read = 1, .written = 2});
    describe("wait", {});
    describe("take slot", {.read = 1, .written = 1, .atomics = true});
    describe("count up", {.variables = {{"counter", true, true}}});
    describe("unknown", {.writes_anything = true, .follows_memory = true, .unknown = "an instruction of tomorrow"});
    describe("print", {});
    module_info.variables.push_back({"counter", 8, false, false});
    prepare_context = [this](FakeContext& device) { prepare(device); };
    start();
    send_module(1);
  }
  void describe(const char* name, image::KernelEffects effects) {
    image::KernelInfo& info = module_info.kernels.emplace_back();
    info.name = effects.name = name;
    info.parameters = {{0, 8}, {8, 8}};
    info.parameter_bytes = 16;
    kernel_effects.push_back(effects);
  }
  static uint64_t& number(uint64_t address) {
    return *reinterpret_cast<uint64_t*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  static uint64_t word(std::span<const std::byte> parameters, size_t index) {
    uint64_t value = 0;
    std::memcpy(&value, parameters.data() + index * sizeof value, sizeof value);
    return value;
  }
  void prepare(FakeContext& device) {
    ASSERT_TRUE(device.map(kVariableAt, Bytes{kSegmentBytes}, *create_memfd("variable", Bytes{kSegmentBytes}), false));
    device.variables["counter"] = {kVariableAt, 8};
    number(kVariableAt) = 100;
    device.kernels["add"] = [this](auto parameters) {
      ++runs;
      number(word(parameters, 0)) += word(parameters, 1);
      return 0u;
    };
    device.kernels["move"] = [this](auto parameters) {
      ++runs;
      number(word(parameters, 1)) = number(word(parameters, 0)) + 1;
      return 0u;
    };
    device.kernels["wait"] = [](auto) { return 0u; };
    device.kernels["unknown"] = [](auto parameters) {
      if (word(parameters, 0) != 0) ++number(word(parameters, 0));
      return 0u;
    };
    device.kernels["take slot"] = [](auto parameters) {
      uint64_t* const slots = &number(word(parameters, 0));
      slots[++slots[0]] = word(parameters, 1);
      return 0u;
    };
    device.kernels["count up"] = [](auto) {
      ++number(kVariableAt);
      return 0u;
    };
    device.kernels["print"] = [this](auto) {
      printer.print("a line\n");
      return 0u;
    };
    for (const uint32_t each : {1u, 2u}) live_stream(each, protocol::kStreamNonBlocking);
  }
  void start() {
    hold_back = true;
    start_worker();
    map_same_memory(1, kFirst, memory[0]);
    map_same_memory(2, kSecond, memory[1]);
    proceed();
  }
  // What is handed over to stream 2 from now on is under way until the worker dies, and so nothing is committed.
  void hold_open() { context->pause(2); }
  uint64_t run(uint32_t kernel, uint64_t first = 0, uint64_t second = 0, uint32_t stream = 1) {
    return launch(stream, kernel, {first, second});
  }
  // All that the device has got of stream 1 is done.
  bool handed_over(uint64_t sequence) {
    return eventually([&] {
      const auto tags = context->handed_over();
      return std::find(tags.begin(), tags.end(), sequence) != tags.end();
    });
  }
  uint64_t at(uint64_t address) {
    uint64_t value = 0;
    std::memcpy(&value, device_text(address, sizeof value).data(), sizeof value);
    return value;
  }
  void dies_and_next_finishes() {
    EXPECT_FALSE(control_page.log().computes()) << "it can go on";
    EXPECT_LT(header().completed.load(), writer->last_sequence()) << "it was in the middle";
    start();
    ASSERT_TRUE(completes(writer->last_sequence()));
    EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  }

  std::array<Fd, 2> memory;
  std::atomic<int> runs{0};
};

TEST_F(EpochTest, AnUpdateInPlaceIsRunAgainFromWhatWasThere) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  hold_open();
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  EXPECT_EQ(at(kFirst), 12u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
  EXPECT_EQ(runs, 3);
}

TEST_F(EpochTest, BuffersThatExchangeRolesAreRestored) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  hold_open();
  run(kWait, 0, 0, 2);
  run(kMove, kFirst, kSecond);
  run(kMove, kSecond, kFirst);
  ASSERT_TRUE(handed_over(run(kMove, kFirst, kSecond)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 7u);
  EXPECT_EQ(at(kSecond), 8u);
}

TEST_F(EpochTest, WhereNothingReadIsOverwrittenNothingIsSaved) {
  hold_open();
  run(kWait, 0, 0, 2);
  const uint64_t moved = run(kMove, kFirst, kSecond);
  ASSERT_TRUE(handed_over(moved));
  for (const device::Tag tag : context->handed_over()) EXPECT_LE(tag, moved);
  dies_and_next_finishes();
  EXPECT_EQ(at(kSecond), 1u);
}

TEST_F(EpochTest, WhatIsDoneIsHeldBackUntilAllIs) {
  hold_open();
  run(kWait, 0, 0, 2);
  const uint64_t added = run(kAdd, kFirst, 5);
  ASSERT_TRUE(handed_over(added));
  EXPECT_EQ(stream(1).completed.load(), 0u);
  EXPECT_EQ(header().committed.load(), 0u);
  context->resume(2);
  ASSERT_TRUE(completes(added));
  EXPECT_EQ(stream(1).completed.load(), added);
  EXPECT_EQ(control_page.log().completed, added);
}

TEST_F(EpochTest, AWorkerThatDiesBeforeItHasSavedLeavesMemoryAsItWas) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 7)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 12u);
}

TEST_F(EpochTest, ThreeDeathsInTheSameEpochAreOneRun) {
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  for (int death = 0; death < 3; ++death) {
    hold_open();
    run(kWait, 0, 0, 2);
    ASSERT_TRUE(handed_over(run(kAdd, kFirst, 1)));
    start();
    hold_open();
    ASSERT_TRUE(handed_over(writer->last_sequence()));
    EXPECT_FALSE(control_page.log().computes());
  }
  start();
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_EQ(at(kFirst), 8u);
}

TEST_F(EpochTest, AtomicsWhoseResultIsUsedAreRestored) {
  hold_open();
  run(kWait, 0, 0, 2);
  run(kTakeSlot, kFirst, 11);
  ASSERT_TRUE(handed_over(run(kTakeSlot, kFirst, 12)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 2u);
  EXPECT_EQ(at(kFirst + 8), 11u);
  EXPECT_EQ(at(kFirst + 16), 12u);
}

TEST_F(EpochTest, VariablesAreThoseOfTheCommit) {
  ASSERT_TRUE(completes(run(kCountUp)));
  ASSERT_TRUE(eventually([&] { return control_page.log().variables_are_saved(); }));
  hold_open();
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kCountUp)));
  dies_and_next_finishes();
  EXPECT_EQ(at(kVariableAt), 102u);
}

TEST_F(EpochTest, LinesArePrintedOnce) {
  hold_open();
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kPrint)));
  EXPECT_EQ(header().print_tail.load(), 0u);
  dies_and_next_finishes();
  EXPECT_EQ(header().print_tail.load(), std::strlen("a line\n"));
}

TEST_F(EpochTest, WhatIsWantedIsShownAlthoughOtherWorkGoesOn) {
  hold_open();
  run(kWait, 0, 0, 2);
  const uint64_t added = run(kAdd, kFirst, 5);
  header().wanted = added;
  protocol::ring_bell(header().to_worker);
  EXPECT_TRUE(eventually([&] { return stream(1).completed.load() == added; }));
  EXPECT_TRUE(control_page.log().computes()) << "what is under way cannot be run again";
  context->resume(2);
  ASSERT_TRUE(completes(added));
  ASSERT_TRUE(completes(run(kAdd, kFirst, 5)));
  EXPECT_FALSE(control_page.log().computes());
}

TEST_F(EpochTest, AKernelThatIsNotUnderstoodNeedsAllMemorySaved) {
  hold_open();
  run(kWait, 0, 0, 2);
  const uint64_t unknown = run(kUnknown, kFirst);
  ASSERT_TRUE(handed_over(unknown));
  EXPECT_EQ(at(kFirst), 1u);
  dies_and_next_finishes();
  EXPECT_EQ(at(kFirst), 1u);
}

TEST_F(EpochTest, WithoutRoomForItTheDeathIsTheSessions) {
  session.reset();
  undo = Bytes{kSegmentBytes};  // for one, and not for both
  auto page = protocol::ControlPage::create(undo);
  ASSERT_TRUE(page);
  control_fd = std::move(page->first);
  control_page = std::move(page->second);
  start();
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kUnknown)));
  EXPECT_TRUE(control_page.log().computes());
  context->resume(1);
  ASSERT_TRUE(completes(writer->last_sequence()));
  EXPECT_FALSE(control_page.log().computes());
}

TEST_F(EpochTest, PinnedMemoryThatKernelsReachCannotBeRepeated) {
  map(9, kTestBase + window.device_bytes - kSegmentBytes, protocol::SegmentKind::kHost);
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kTestBase + window.device_bytes - kSegmentBytes, 1)));
  EXPECT_TRUE(control_page.log().computes());
}

TEST_F(EpochTest, AFreeWaitsForTheCommit) {
  context->pause(1);
  run(kAdd, kFirst, 5);
  const uint64_t freed = simple(RecordType::kFree, 0, 2);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() >= 2; }));
  EXPECT_TRUE(context->mapped().contains(kSecond));
  context->resume(1);
  ASSERT_TRUE(completes(freed));
  EXPECT_FALSE(context->mapped().contains(kSecond));
}

TEST_F(EpochTest, BesideAnOpenHostCallNothingIsHeldBack) {
  const uint64_t call = simple(RecordType::kHostCall, 2);
  ASSERT_TRUE(eventually([&] { return stream(2).host_reached.load() == call; }));
  const uint64_t added = run(kAdd, kFirst, 5);
  EXPECT_TRUE(eventually([&] { return stream(1).completed.load() == added; }));
  stream(2).host_done = call;
  protocol::ring_bell(header().to_worker);
  ASSERT_TRUE(completes(added));
}

TEST_F(EpochTest, ATaskEndsBehindItsCommit) {
  run(kAdd, kFirst, 5);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_TRUE(control_page.log().ended);
  uint64_t number = 0;
  ASSERT_EQ(::pread(memory[0].get(), &number, sizeof number, 0), 8);
  EXPECT_EQ(number, 5u);
}

TEST_F(EpochTest, AFaultEndsTheEpoch) {
  hold_open();
  run(kWait, 0, 0, 2);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 5)));
  fail_device(kCudaIllegalAddress, "another's");
  EXPECT_TRUE(eventually([&] { return header().committed.load() == 0 && header().fault.load() != 0; }));
  const uint64_t freed = simple(RecordType::kFree, 0, 2);
  context->resume(2);
  EXPECT_TRUE(completes(freed));
}

}  // namespace
}  // namespace heddle::worker
