#include "worker/session.h"

#include <gmock/gmock.h>

#include "core/clock.h"
#include "library/curand.h"
#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

enum Kernels : uint32_t { kNothing = 0, kStore = 1, kFaulty = 2 };
constexpr uint64_t kFirst = kTestBase, kSecond = kTestBase + kSegmentBytes;

struct SessionTest : SessionHarness {
  void SetUp() override {
    SessionHarness::SetUp();
    module_info.kernels.resize(3);
    module_info.kernels[kNothing].name = "nothing";
    module_info.kernels[kStore].name = "store";  // (address, value)
    module_info.kernels[kStore].parameter_bytes = 16;
    module_info.kernels[kFaulty].name = "faulty";
    module_info.variables.push_back({"answer", 4, true, false});
    prepare_context = [this](FakeContext& device) {
      device_answer = 42;
      device.kernels["nothing"] = [](auto) { return 0u; };
      device.kernels["faulty"] = [](auto) { return kCudaIllegalAddress; };
      device.kernels["store"] = [](std::span<const std::byte> parameters) {
        uint64_t words[2];
        std::memcpy(words, parameters.data(), sizeof words);
        std::memcpy(reinterpret_cast<void*>(words[0]), &words[1], 8);  // NOLINT(performance-no-int-to-ptr)
        return 0u;
      };
      device.variables["answer"] = {answer_address(), 4};
    };
    start_worker();
    send_module(1);
  }
  // A worker's: it is as its module has it when the next worker loads that.
  uint64_t answer_address() const { return reinterpret_cast<uintptr_t>(&device_answer); }
  static library::curand::Draw draw() {
    library::curand::Draw draw;
    draw.type = library::curand::kPhilox;
    draw.seed = 42;
    return draw;
  }
  uint64_t library_call(uint32_t stream) {
    const auto words = draw().pack();
    auto* record = writer->reserve<protocol::LibraryCallRecord>(RecordType::kLibraryCall, stream, sizeof words);
    record->library = static_cast<uint32_t>(library::Library::kCurand);
    record->function = 1;
    record->words = words.size();
    std::memcpy(record + 1, words.data(), sizeof words);
    return writer->publish();
  }
  uint64_t need(uint64_t segment) { return simple(RecordType::kNeed, 0, segment); }

  uint64_t device_answer = 42;
};

TEST_F(SessionTest, CopiesThenLaunchesInOrder) {
  map(1, kFirst);
  need(1);
  copy_in(0, kFirst, "hello device");
  launch(0, kStore, {kFirst + 16, 0x4142434445464748});
  ASSERT_TRUE(completes(marker()));
  EXPECT_EQ(device_text(kFirst, 12), "hello device");
  EXPECT_EQ(device_text(kFirst + 16, 8), "HGFEDCBA");
  EXPECT_EQ(header().committed.load(), 4u);
  EXPECT_EQ(header().record_head.load(), header().record_tail.load());
  EXPECT_EQ(stream(0).completed.load(), 4u);
  EXPECT_EQ(header().fault.load(), 0u);
}

TEST_F(SessionTest, AMarkerOfAnIdleStreamNeverReachesTheDevice) {
  live_stream(3);
  const uint64_t last = marker(3);
  ASSERT_TRUE(completes(last));
  EXPECT_EQ(stream(3).completed.load(), last);
  EXPECT_THAT(context->handed_over(), IsEmpty());
}

TEST_F(SessionTest, AMarkerBehindBusyWorkWaitsForIt) {
  context->pause(3);
  launch(3, kNothing);
  const uint64_t last = marker(3);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 2; }));
  EXPECT_EQ(stream(3).completed.load(), 0u);
  context->resume(3);
  ASSERT_TRUE(completes(last));
}

TEST_F(SessionTest, TheDefaultStreamsMarkerWaitsForBlockingStreams) {
  context->pause(3);
  launch(3, kNothing);
  const uint64_t last = marker(0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 2; }));
  EXPECT_EQ(stream(0).completed.load(), 0u);
  context->resume(3);
  ASSERT_TRUE(completes(last));
}

// stream 1: ---- paused ----|
// stream 2: done
TEST_F(SessionTest, StreamsFinishOutOfOrderButTheWatermarkWaits) {
  context->pause(1);
  const uint64_t slow = launch(1, kNothing);
  const uint64_t fast = launch(2, kNothing);
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == fast; }));
  EXPECT_EQ(header().completed.load(), 0u);
  EXPECT_EQ(header().record_head.load(), 0u);
  context->resume(1);
  ASSERT_TRUE(completes(fast));
  EXPECT_EQ(stream(1).completed.load(), slow);
}

TEST_F(SessionTest, ARecordWithoutDeviceWorkDoesNotOvertakeItsBusyStream) {
  map(1, kFirst);
  context->pause(0);
  const uint64_t busy = launch(0, kNothing);
  const uint64_t later = need(1);
  live_stream(2, protocol::kStreamNonBlocking);
  const uint64_t other = marker(2);
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == other; }));
  EXPECT_LT(stream(0).completed.load(), busy);
  context->resume(0);
  ASSERT_TRUE(eventually([&] { return stream(0).completed.load() == later; }));
}

TEST_F(SessionTest, EverythingBehindANeedWaitsForTheSegment) {
  need(1);
  launch(2, kStore, {kFirst, 5});
  const uint64_t last = marker();
  marker(5);
  EXPECT_THAT(context->handed_over(), IsEmpty());
  map(1, kFirst);
  ASSERT_TRUE(completes(last));
  EXPECT_EQ(device_text(kFirst, 1), "\5");
}

TEST_F(SessionTest, ALaunchWaitsForItsModule) {
  const uint64_t last = launch(0, kNothing, {}, 2);
  EXPECT_EQ(header().completed.load(), 0u);
  send_module(2);
  ASSERT_TRUE(completes(last));
  EXPECT_EQ(header().fault.load(), 0u);
}

TEST_F(SessionTest, StreamsAreMadeAsTheTableSaysAndUnmadeWhenLetGo) {
  live_stream(4, protocol::kStreamNonBlocking, -3);
  ASSERT_TRUE(completes(launch(4, kNothing)));
  EXPECT_EQ(context->streams().at(4), (FakeContext::Stream{true, -3}));
  stream(4).flags = 0;
  live_stream(5);
  ASSERT_TRUE(completes(launch(5, kNothing)));
  EXPECT_EQ(context->streams().size(), 1u);
  EXPECT_EQ(context->streams().at(5), (FakeContext::Stream{false, 0}));
}

TEST_F(SessionTest, ASlotUsedAgainWithOtherFlagsBecomesANewStream) {
  live_stream(4);
  ASSERT_TRUE(completes(launch(4, kNothing)));
  live_stream(4, protocol::kStreamNonBlocking);
  ASSERT_TRUE(completes(launch(4, kNothing)));
  EXPECT_EQ(context->streams().at(4), (FakeContext::Stream{true, 0}));
}

TEST_F(SessionTest, AFreeWaitsForEarlierWorkOfAllStreams) {
  map(1, kFirst);
  need(1);
  context->pause(1);
  launch(1, kNothing);
  const uint64_t free = simple(RecordType::kFree, 0, 1);
  const uint64_t after = launch(2, kNothing);
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == after; })) << "later work is not held up";
  EXPECT_EQ(told<protocol::SegmentFreed>(), 0u);
  EXPECT_LT(header().completed.load(), free);
  context->resume(1);
  ASSERT_TRUE(completes(after));
  EXPECT_EQ(told<protocol::SegmentFreed>(), 1u);
  EXPECT_EQ(last<protocol::SegmentFreed>().number, 1u);
  EXPECT_THAT(context->mapped(), IsEmpty());
}

TEST_F(SessionTest, AnAddressServesAnotherSegmentAfterTheFree) {
  map(1, kFirst);
  need(1);
  copy_in(0, kFirst, "old");
  ASSERT_TRUE(completes(simple(RecordType::kFree, 0, 1)));
  map(2, kFirst);
  need(2);
  ASSERT_TRUE(completes(copy_in(0, kFirst + 1, "new")));
  EXPECT_EQ(device_text(kFirst, 4), std::string("\0new", 4));
}

TEST_F(SessionTest, AFreeOfSomethingThatIsNotMappedIsPassedOver) {
  ASSERT_TRUE(completes(simple(RecordType::kFree, 0, 99)));
  EXPECT_EQ(told<protocol::SegmentFreed>(), 0u);
}

TEST_F(SessionTest, AHostSegmentGivenBackStaysUntilEarlierWorkIsDone) {
  const uint64_t host = window.base + window.device_bytes;
  map(1, host, protocol::SegmentKind::kHost);
  map(2, kFirst);
  need(1);
  need(2);
  context->pause(1);
  launch(1, kStore, {host, 1});
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  release_host(1);
  ASSERT_TRUE(completes(need(2) - 2));
  EXPECT_THAT(context->mapped(), UnorderedElementsAre(kFirst, host));
  context->resume(1);
  ASSERT_TRUE(eventually([&] { return context->mapped().size() == 1; }));
}

TEST_F(SessionTest, AHostCallHoldsItsStreamUntilTheProgramHasReturned) {
  const uint64_t call = simple(RecordType::kHostCall, 3);
  const uint64_t behind = launch(3, kNothing);
  const uint64_t other = launch(4, kNothing);
  ASSERT_TRUE(eventually([&] { return stream(3).host_reached.load() == call; }));
  ASSERT_TRUE(eventually([&] { return stream(4).completed.load() == other; }));
  EXPECT_EQ(stream(3).completed.load(), 0u);
  stream(3).host_done = call;
  protocol::ring_bell(header().to_worker);
  ASSERT_TRUE(completes(other));
  EXPECT_EQ(stream(3).completed.load(), behind);
}

TEST_F(SessionTest, AnEventCarriesTheTimeAtWhichItWasReached) {
  const TimePoint before = MonotonicClock().now();
  const uint64_t record = simple(RecordType::kEventRecord, 0, 17);
  ASSERT_TRUE(eventually([&] { return ring.events()[17].completed.load() == record; }));
  EXPECT_GE(ring.events()[17].time_ns.load(), static_cast<uint64_t>(before.time_since_epoch().count()));
}

// event 5: recorded on slow stream 1, then again on stream 2: the later record counts, whatever finishes last.
TEST_F(SessionTest, AnEventRecordedAgainKeepsTheLaterRecord) {
  context->pause(1);
  launch(1, kNothing);
  simple(RecordType::kEventRecord, 1, 5);
  const uint64_t later = simple(RecordType::kEventRecord, 2, 5);
  ASSERT_TRUE(eventually([&] { return ring.events()[5].completed.load() == later; }));
  const uint64_t time = ring.events()[5].time_ns.load();
  context->resume(1);
  ASSERT_TRUE(completes(later));
  EXPECT_EQ(ring.events()[5].completed.load(), later);
  EXPECT_EQ(ring.events()[5].time_ns.load(), time);
}

TEST_F(SessionTest, AStreamWaitsForAnotherStreamsEvent) {
  map(1, kFirst);
  need(1);
  context->pause(1);
  launch(1, kStore, {kFirst, 1});
  const uint64_t event = simple(RecordType::kEventRecord, 1, 5);
  simple(RecordType::kEventWait, 2, 5, event);
  launch(2, kStore, {kFirst, 2});
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 4; }));
  EXPECT_EQ(stream(2).completed.load(), 0u);
  context->resume(1);
  ASSERT_TRUE(completes(event + 2));
  EXPECT_EQ(device_text(kFirst, 1), "\2");
}

TEST_F(SessionTest, AWaitForAnEventLongReachedCostsNothing) {
  const uint64_t event = simple(RecordType::kEventRecord, 1, 5);
  ASSERT_TRUE(completes(simple(RecordType::kEventWait, 2, 5, event)));
  EXPECT_THAT(context->handed_over(), IsEmpty());
}

TEST_F(SessionTest, ASymbolsAddressAndSizeAreWrittenToTheBulkArea) {
  const uint64_t position = reserve_bulk(16);
  auto* record = writer->reserve<protocol::SymbolRecord>(RecordType::kSymbol, 0);
  record->module = 1;
  record->index = 0;
  record->position = position;
  ASSERT_TRUE(completes(writer->publish()));
  uint64_t answer[2];
  std::memcpy(answer, bulk_at(position), sizeof answer);
  EXPECT_THAT(answer, ElementsAre(answer_address(), 4u));
}

TEST_F(SessionTest, WhatCameOfOpeningALibraryIsWrittenToTheBulkArea) {
  const auto open = [this] {
    const uint64_t position = reserve_bulk(sizeof(protocol::LibraryOpened));
    auto* record = writer->reserve<protocol::LibraryOpenRecord>(RecordType::kLibraryOpen, 0);
    record->library = static_cast<uint32_t>(library::Library::kCublas);
    record->position = position;
    EXPECT_TRUE(completes(writer->publish()));
    protocol::LibraryOpened opened;
    std::memcpy(&opened, bulk_at(position), sizeof opened);
    return opened;
  };
  const protocol::LibraryOpened missing = open();
  EXPECT_NE(missing.cuda_error, 0u);
  EXPECT_STREQ(missing.text, "cuBLAS: fake device: no library");
  EXPECT_EQ(header().fault.load(), 0u);
  context->library_version = 130000;
  const protocol::LibraryOpened found = open();
  EXPECT_EQ(found.cuda_error, 0u);
  EXPECT_EQ(found.version, 130000u);
}

TEST_F(SessionTest, ALibraryCallReachesTheDeviceInItsStreamsOrder) {
  ASSERT_TRUE(completes(library_call(1)));
  EXPECT_THAT(context->library_calls(), ElementsAre(::testing::ElementsAreArray(draw().pack())));
}

TEST_F(SessionTest, ALibraryCallThatMakesNoSenseEndsTheSession) {
  auto* record = writer->reserve<protocol::LibraryCallRecord>(RecordType::kLibraryCall, 1);
  record->library = static_cast<uint32_t>(library::Library::kCublas);
  record->function = 1'000'000;
  record->words = 0;
  ASSERT_TRUE(completes(writer->publish()));
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
  EXPECT_THAT(context->handed_over(), IsEmpty());
}

TEST_F(SessionTest, TheTasksEndComesAfterAllWorkAndItsUsage) {
  map(1, kFirst);
  need(1);
  copy_in(2, kFirst, "12345");
  context->pause(1);
  launch(1, kNothing);
  const uint64_t end = simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == 2; }));
  EXPECT_EQ(told<protocol::TaskEnded>(), 0u);
  context->resume(1);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_EQ(header().committed.load(), end);
  EXPECT_EQ(last<protocol::TaskEnded>().serial, kTaskSerial);
  EXPECT_EQ(usage().launches, 1u);
  EXPECT_EQ(usage().copies, 1u);
  EXPECT_EQ(usage().copied_bytes, 5u);
}

TEST_F(SessionTest, TheTasksEndSaysThatAllIsUnmapped) {
  map(1, kFirst);
  need(1);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_EQ(last<protocol::TaskEnded>().unmapped, 1u);
}

TEST_F(SessionTest, TheTasksEndSaysThatSomethingCouldNotBeUnmapped) {
  map(1, kFirst);
  map(2, kFirst);  // the fake device has space for one there, and so refuses to unmap the other
  need(2);
  simple(RecordType::kFree, 0, 1);
  simple(RecordType::kFree, 0, 2);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_EQ(told<protocol::SegmentFreed>(), 1u);
  EXPECT_EQ(last<protocol::TaskEnded>().unmapped, 0u);
}

TEST_F(SessionTest, WhatFollowsTheTasksEndIsLeftToTheNextWorker) {
  const uint64_t end = simple(RecordType::kTaskEnd, 0, kTaskSerial);
  const uint64_t next = marker();
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_EQ(header().completed.load(), end);
  start_worker();
  ASSERT_TRUE(completes(next));
}

TEST_F(SessionTest, TheNextTaskGoesOnWithTheModulesAndTheUsage) {
  launch(0, kNothing);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  need(2);
  launch(0, kStore, {kFirst, 0x41});
  const uint64_t end = simple(RecordType::kTaskEnd, 0, kTaskSerial + 1);
  next_task(kTaskSerial + 1);
  map(2, kFirst);
  proceed();
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 2; }));
  EXPECT_EQ(header().committed.load(), end);
  EXPECT_EQ(header().fault.load(), 0u);
  EXPECT_EQ(last<protocol::TaskEnded>().serial, kTaskSerial + 1);
  EXPECT_EQ(usage().launches, 2u);
}

TEST_F(SessionTest, TheNextTaskWaitsForItsProceed) {
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  proceed();  // of the first task, sent before heddled heard of its end
  next_task(kTaskSerial + 1);
  const uint64_t next = marker();
  for (const uint64_t address : {kFirst, kSecond}) {  // between the two it looks at the ring
    map(address, address);
    ASSERT_TRUE(eventually([&] { return context->mapped().contains(address); }));
  }
  EXPECT_EQ(header().completed.load() + 1, next);
  proceed();
  ASSERT_TRUE(completes(next));
}

TEST_F(SessionTest, WhatATaskLeavesMappedIsUnmappedAndHostMemoryStays) {
  constexpr uint64_t kPinned = kTestBase + 64 * kMiB;
  map(1, kFirst);
  map(2, kPinned, protocol::SegmentKind::kHost);
  need(1);
  need(2);
  simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_THAT(context->mapped(), ElementsAre(kPinned));
  map(3, kSecond);  // for the task that has ended
  next_task(kTaskSerial + 1);
  map(1, kFirst);
  proceed();
  ASSERT_TRUE(completes(need(1)));
  EXPECT_THAT(context->mapped(), ElementsAre(kFirst, kPinned));
}

TEST_F(SessionTest, ASecondWorkerContinuesBehindWhatWasCommitted) {
  const Fd memory = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
  map_same_memory(1, kFirst, memory);
  need(1);
  ASSERT_TRUE(completes(copy_in(0, kFirst, "a")));
  context->pause(1);
  launch(1, kStore, {kFirst + 8, 'b'});
  const uint64_t out_of_order = copy_in(2, kFirst + 16, "c");
  const uint64_t last = copy_in(1, kFirst + 24, "d");
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == out_of_order; }));
  hold_back = true;
  start_worker();  // the first one died
  EXPECT_EQ(header().committed.load(), 2u);
  map_same_memory(1, kFirst, memory);
  send_module(1);
  proceed();
  // The open part of the log runs again.
  ASSERT_TRUE(completes(last));
  EXPECT_EQ(
      device_text(kFirst, 1) + device_text(kFirst + 8, 1) + device_text(kFirst + 16, 1) + device_text(kFirst + 24, 1),
      "abcd");
}

TEST_F(SessionTest, DevicePrintfReachesThePrintArea) {
  printer.print("one ");
  printer.print("two");
  EXPECT_EQ(std::string(ring.print_area().data(), header().print_tail.load()), "one two");
}

TEST_F(SessionTest, PrintfWithoutRoomIsDroppedAndCounted) {
  const std::string most(protocol::kDefaultPrintBytes - 1, 'x');
  printer.print(most);
  printer.print("two");
  printer.print("1");
  EXPECT_EQ(header().print_tail.load(), protocol::kDefaultPrintBytes);
  EXPECT_EQ(header().print_lost.load(), 3u);
  const std::string full(protocol::kDefaultPrintBytes, 'y');
  while (header().print_tail.load() < protocol::kPrintBytes) {
    header().print_head = header().print_tail.load();
    printer.print(full);
  }
  header().print_head = header().print_tail.load();
  printer.print("again");  // around the end
  EXPECT_EQ(std::string(ring.print_area().data(), 5), "again");
}

TEST_F(SessionTest, FindingsOfChecksReachTheReportArea) {
  EXPECT_FALSE(context->findings);
  header().checks = 1;
  start_worker();
  ASSERT_TRUE(context->findings);
  context->findings("a race");
  context->findings("another");
  EXPECT_EQ(header().findings.load(), 2u);
  EXPECT_EQ(std::string(ring.report_area().data(), header().report_tail.load()),
            "heddle: check: a race\nheddle: check: another\n");
  context->findings(std::string(protocol::kReportBytes, 'x'));  // finds no space
  EXPECT_EQ(header().findings.load(), 3u);
  EXPECT_LT(header().report_tail.load(), 100u);
}

// ---- Faults ----

TEST_F(SessionTest, ADeviceFaultIsStickyAndNothingHangs) {
  map(1, kFirst);
  need(1);
  launch(1, kFaulty);
  const uint64_t call = simple(RecordType::kHostCall, 2);
  const uint64_t event = simple(RecordType::kEventRecord, 1, 3);
  launch(1, kStore, {kFirst, 9});
  simple(RecordType::kFree, 0, 1);
  const uint64_t end = simple(RecordType::kTaskEnd, 0, kTaskSerial);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; })) << "host call " << call;
  EXPECT_EQ(header().fault.load(), kCudaIllegalAddress);
  EXPECT_STREQ(header().fault_text, "fake fault");
  EXPECT_EQ(ring.events()[3].completed.load(), event);
  EXPECT_EQ(header().completed.load(), end);
  EXPECT_EQ(told<protocol::WorkerFault>(), 1u);
  EXPECT_EQ(last<protocol::WorkerFault>().cuda_error, kCudaIllegalAddress);
  EXPECT_EQ(told<protocol::SegmentFreed>(), 1u);
}

TEST_F(SessionTest, ANeighboursFaultFailsTheSession) {
  const uint64_t call = simple(RecordType::kHostCall, 2);
  ASSERT_TRUE(eventually([&] { return stream(2).host_reached.load() == call; }));
  fail_device(700, "a neighbour's fault");
  ASSERT_TRUE(completes(call)) << "a held stream is let go";
  EXPECT_EQ(header().fault.load(), 700u);
  ASSERT_TRUE(completes(launch(1, kNothing)));
}

TEST_F(SessionTest, WhereFaultsAreSharedItsOwnMayBeAnothersAndIsHeldBack) {
  shared_faults = true;
  start_worker();
  send_module(1);
  const uint64_t faulty = launch(1, kFaulty);
  ASSERT_TRUE(eventually([&] { return told<protocol::WorkerFault>() == 1; }));
  EXPECT_EQ(last<protocol::WorkerFault>().held_back, 1u);
  EXPECT_EQ(last<protocol::WorkerFault>().cuda_error, kCudaIllegalAddress);
  EXPECT_EQ(header().fault.load(), 0u);
  EXPECT_LT(header().completed.load(), faulty);
  EXPECT_TRUE(control_page.log().under_way());
}

TEST_F(SessionTest, AFaultThatWasHeldBackIsShownWhenHeddledSaysSo) {
  shared_faults = true;
  start_worker();
  send_module(1);
  const uint64_t faulty = launch(1, kFaulty);
  ASSERT_TRUE(eventually([&] { return told<protocol::WorkerFault>() == 1; }));
  const uint64_t call = simple(RecordType::kHostCall, 2);
  fail_device(999, "the program's own");
  ASSERT_TRUE(completes(call)) << "nothing hangs behind " << faulty;
  EXPECT_EQ(header().fault.load(), kCudaIllegalAddress);
  EXPECT_STREQ(header().fault_text, "fake fault");
  EXPECT_EQ(last<protocol::WorkerFault>().held_back, 0u);
}

TEST_F(SessionTest, WhatTheWorkerRefusesIsNoFaultOfTheDevice) {
  shared_faults = true;
  start_worker();
  simple(RecordType::kPrefetchModule, 0, 0);  // no client of ours writes that
  ASSERT_TRUE(eventually([&] { return told<protocol::WorkerFault>() == 1; }));
  EXPECT_EQ(last<protocol::WorkerFault>().device_lost, 0u);
}

TEST_F(SessionTest, ANeedDoesNotOutliveAFault) {
  const uint64_t last = need(1);
  fail_device(700, "a neighbour's fault");
  ASSERT_TRUE(completes(last));
}

TEST_F(SessionTest, AModuleThatCannotBeLoadedIsAFaultWithItsText) {
  context->refuse_modules({ErrorCode::kNotSupported, "PTX line 12: wgmma"});
  ASSERT_TRUE(completes(simple(RecordType::kPrefetchModule, 0, 1)));
  EXPECT_EQ(header().fault.load(), kCudaNotSupported);
  EXPECT_THAT(header().fault_text, HasSubstr("wgmma"));
}

// Counted, and nothing to map: the context may take as much for itself.
TEST_F(SessionTest, RoomIsTheContextsUntilItIsFreed) {
  map(1, kFirst, protocol::SegmentKind::kRoom);
  map(2, kFirst + kSegmentBytes, protocol::SegmentKind::kRoom);
  map(3, kFirst + 2 * kSegmentBytes, protocol::SegmentKind::kDriver);  // what is the driver's is no room for images
  need(1);
  need(2);
  need(3);
  ASSERT_TRUE(completes(marker()));
  EXPECT_EQ(context->room(), Bytes{2 * kSegmentBytes});
  EXPECT_THAT(context->mapped(), IsEmpty());
  ASSERT_TRUE(completes(simple(RecordType::kFree, 0, 1)));
  EXPECT_EQ(told<protocol::SegmentFreed>(), 1u);
  EXPECT_EQ(context->room(), Bytes{kSegmentBytes});
}

TEST_F(SessionTest, LimitsHoldForTheNextWorkerToo) {
  const auto stack = static_cast<uint64_t>(protocol::LimitKind::kStackBytes);
  header().stack_bytes = 4096;
  ASSERT_TRUE(completes(simple(RecordType::kLimit, 0, stack, 4096)));
  EXPECT_EQ(context->limits()[device::Limit::kStackBytes], 4096u);
  start_worker();
  ASSERT_TRUE(completes(marker()));
  EXPECT_EQ(context->limits()[device::Limit::kStackBytes], 4096u);
  EXPECT_EQ(context->limits().count(device::Limit::kHeapBytes), 0u);
  header().pending_launches = 4096;
  ASSERT_TRUE(
      completes(simple(RecordType::kLimit, 0, static_cast<uint64_t>(protocol::LimitKind::kPendingLaunches), 4096)));
  EXPECT_EQ(context->limits()[device::Limit::kPendingLaunches], 4096u);
  start_worker();
  ASSERT_TRUE(completes(marker()));
  EXPECT_EQ(context->limits()[device::Limit::kPendingLaunches], 4096u);
}

TEST_F(SessionTest, ALimitThatDoesNotExistIsMalformed) {
  ASSERT_TRUE(completes(simple(RecordType::kLimit, 0, 9, 4096)));
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
}

TEST_F(SessionTest, ThePrintLimitIsTheProgramsOwn) {
  header().print_bytes = 8;
  printer.print("12345");
  printer.print("6789");
  printer.print("678");
  EXPECT_EQ(header().print_tail.load(), 8u);
  EXPECT_EQ(header().print_lost.load(), 4u);
}

// What the program writes to a slot of the texture table.
void fill_slot(protocol::TextureSlot& slot, uint64_t handle, uint32_t width) {
  slot.handle = 0;
  slot.texture = {};
  slot.texture.width = width;
  slot.born = 0;
  slot.gone = 0;
  slot.handle = handle;
}

TEST_F(SessionTest, TexturesComeAndGoWithTheirRecords) {
  fill_slot(ring.textures()[7], 70, 32);
  ASSERT_TRUE(completes(simple(RecordType::kTexture, 0, 7)));
  ASSERT_EQ(context->textures().count(70), 1u);
  EXPECT_EQ(context->textures()[70].width, 32u);
  ASSERT_TRUE(completes(simple(RecordType::kTextureGone, 0, 7)));
  EXPECT_THAT(context->textures(), IsEmpty());
}

TEST_F(SessionTest, TheNextWorkerHasTheTexturesThatStillLive) {
  header().textures_used = 3;
  for (uint32_t slot = 0; slot < 3; ++slot) {
    fill_slot(ring.textures()[slot], 10 + slot, 32);
    const uint64_t born = simple(RecordType::kTexture, 0, slot);
    ring.textures()[slot].born = born;
    ASSERT_TRUE(completes(born));
  }
  const uint64_t gone = simple(RecordType::kTextureGone, 0, 1);
  ring.textures()[1].gone = gone;
  ASSERT_TRUE(completes(gone));
  start_worker();
  ASSERT_TRUE(completes(marker()));
  const auto textures = context->textures();
  EXPECT_EQ(textures.size(), 2u);
  EXPECT_EQ(textures.count(11), 0u);
}

TEST_F(SessionTest, ATextureThatMakesNoSenseIsAFault) {
  fill_slot(ring.textures()[0], 1, 0);
  ASSERT_TRUE(completes(simple(RecordType::kTexture, 0, 0)));
  EXPECT_EQ(header().fault.load(), kCudaInvalidValue);
  EXPECT_THAT(context->textures(), IsEmpty());
}

TEST_F(SessionTest, ATextureSlotThatDoesNotExistIsMalformed) {
  ASSERT_TRUE(completes(simple(RecordType::kTexture, 0, protocol::kMaxTextures)));
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
}

TEST_F(SessionTest, WrongLaunchesEndTheSessionNotTheWorker) {
  protocol::LaunchRecord record{};
  record.module = 1;
  record.kernel = kNothing;
  record.grid[0] = record.grid[1] = record.grid[2] = 1;
  record.block[0] = 2048;
  record.block[1] = record.block[2] = 1;
  ASSERT_TRUE(completes(append(record, {})));
  EXPECT_EQ(header().fault.load(), kCudaInvalidConfiguration);
  EXPECT_THAT(context->handed_over(), IsEmpty());
}

TEST_F(SessionTest, AKernelThatDoesNotExistIsMalformed) {
  ASSERT_TRUE(completes(launch(0, 77)));
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
  EXPECT_THAT(header().fault_text, HasSubstr("no kernel 77"));
}

TEST_F(SessionTest, ACopyOutsideTheWindowNeverReachesTheDevice) {
  ASSERT_TRUE(completes(copy_in(0, window.base - 1, "x")));
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
  EXPECT_THAT(header().fault_text, HasSubstr("window"));
  EXPECT_THAT(context->handed_over(), IsEmpty());
}

TEST_F(SessionTest, EndingAnotherTaskIsAFaultAndNamesItsOwnTask) {
  simple(RecordType::kTaskEnd, 0, kTaskSerial + 1);
  ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_EQ(last<protocol::TaskEnded>().serial, kTaskSerial);
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
}

TEST_F(SessionTest, ATailOutOfThinAirIsAFault) {
  header().record_tail = 1ull << 40;
  protocol::ring_bell(header().to_worker);
  ASSERT_TRUE(eventually([&] { return told<protocol::WorkerFault>() == 1; }));
  EXPECT_EQ(header().fault.load(), kCudaUnknown);
}

TEST_F(SessionTest, AnotherWorkerGoesOnWithWhatWasMeasured) {
  ASSERT_TRUE(completes(launch(0, kNothing)));
  context->pause(0);
  launch(0, kNothing);  // dies with its worker
  ASSERT_TRUE(eventually([&] { return usage().busy_since_ns > 0; }));
  hold_back = true;
  start_worker();
  EXPECT_EQ(usage().launches, 1u);
  EXPECT_EQ(usage().busy_since_ns, 0u);
  proceed();
  ASSERT_TRUE(completes(launch(0, kNothing)));
  EXPECT_EQ(usage().launches, 3u);  // with the one that was run again
}

TEST_F(SessionTest, WhatTheDeviceHasShowsWhileItRuns) {
  EXPECT_EQ(usage().busy_since_ns, 0u);
  const auto before = static_cast<uint64_t>(MonotonicClock().now().time_since_epoch().count());
  context->pause(1);
  launch(1, kNothing);
  launch(1, kNothing);
  live_stream(2, protocol::kStreamNonBlocking);
  marker(2);
  ASSERT_TRUE(eventually([&] { return usage().busy_since_ns > 0; }));
  EXPECT_GE(usage().busy_since_ns, before);
  EXPECT_EQ(usage().busy_ns, 0u);
  context->resume(1);
  ASSERT_TRUE(eventually([&] { return usage().launches == 2; }));
  EXPECT_EQ(usage().busy_since_ns, 0u);
}

TEST_F(SessionTest, FillsAndLibraryCallsAreWorkAndMarkersAreNot) {
  map(1, kFirst);
  need(1);
  ASSERT_TRUE(completes(fill(0, kFirst, 100, 1)));
  EXPECT_TRUE(eventually([&] { return usage().bursts == 1; }));
  context->pause(1);
  const uint64_t call = library_call(1);
  EXPECT_TRUE(eventually([&] { return usage().busy_since_ns > 0; }));
  context->resume(1);
  ASSERT_TRUE(completes(call));
  EXPECT_TRUE(eventually([&] { return usage().bursts == 2; }));
  ASSERT_TRUE(completes(marker()));
  ASSERT_TRUE(completes(fill(0, kFirst, 0, 1)));               // nothing to do
  std::this_thread::sleep_for(std::chrono::milliseconds(60));  // until the issuer has rested
  EXPECT_EQ(usage().bursts, 2u);
  EXPECT_EQ(usage().busy_since_ns, 0u);
  EXPECT_EQ(usage().launches, 0u);
}

// A burst ends with the last of what was pending, on whichever stream.
TEST_F(SessionTest, ABurstLastsWhileAnythingIsPending) {
  context->pause(1);
  launch(1, kNothing);
  ASSERT_TRUE(eventually([&] { return usage().busy_since_ns > 0; }));
  const uint64_t other = launch(2, kNothing);
  ASSERT_TRUE(eventually([&] { return stream(2).completed.load() == other; }));
  EXPECT_EQ(usage().bursts, 0u);
  context->resume(1);
  ASSERT_TRUE(eventually([&] { return usage().bursts == 1; }));
  EXPECT_GT(usage().longest_burst_ns, 0u);
}

TEST_F(SessionTest, AMemoryOfAnotherKindIsNoControlPage) {
  session.reset();
  control_fd = std::move(*create_memfd("other", protocol::ControlPage::kMemoryBytes));
  const auto started =
      Session::start(ring_fd, control_fd, {model, window, kTaskSerial, {}, shared_faults}, *context, printer, *outbox);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().text, HasSubstr("not a control page"));
}

}  // namespace
}  // namespace heddle::worker
