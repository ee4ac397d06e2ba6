// A worker dies, and another one takes over: the same ring and control page, the rest anew.

#include <gmock/gmock.h>

#include <cstring>

#include "worker/testing/session_harness.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kCounter = kTestBase + 4 * kSegmentBytes;  // where the worker has its variable; not the program's

struct TakeoverTest : SessionHarness {
  void SetUp() override {
    SessionHarness::SetUp();
    module_info.kernels.resize(2);
    module_info.kernels[0].name = "count";
    module_info.kernels[1].name = "nothing";
    module_info.variables.push_back({"counter", 8, false, false});
    prepare_context = [this](FakeContext& device) {
      ASSERT_TRUE(device.map(kCounter, Bytes{kSegmentBytes}, *create_memfd("variables", Bytes{kSegmentBytes}), false));
      device.variables["counter"] = {kCounter + moved, 8};
      counter(moved) = 100;
      device.kernels["count"] = [at = moved](auto) {
        ++counter(at);
        return 0u;
      };
      device.kernels["nothing"] = [](auto) { return 0u; };
    };
    start_worker();
    send_module(1);
  }
  static uint64_t& counter(uint64_t offset = 0) {
    return *reinterpret_cast<uint64_t*>(kCounter + offset);  // NOLINT(performance-no-int-to-ptr)
  }
  uint64_t counted() {
    uint64_t value = 0;
    std::memcpy(&value, device_text(kCounter, sizeof value).data(), sizeof value);
    return value;
  }
  bool saved() {
    return eventually([&] {
      const protocol::LogState log = control_page.log();
      return !log.computes() && log.variables_are_saved() && log.completed == writer->last_sequence();
    });
  }
  void end_task() {
    simple(RecordType::kTaskEnd, 0, kTaskSerial);
    ASSERT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
    ASSERT_TRUE(control_page.log().ended);
  }
  // In another worker: this one did not stay.
  void begin_next_task() {
    bound_serial = kTaskSerial + 1;
    start_worker();
  }
  uint64_t symbol() {
    const uint64_t position = reserve_bulk(16);
    auto* record = writer->reserve<protocol::SymbolRecord>(RecordType::kSymbol, 0);
    record->module = 1;
    record->index = 0;
    record->position = position;
    return writer->publish();
  }

  uint64_t moved = 0;  // of the next worker's variable
};

TEST_F(TakeoverTest, VariablesKeepWhatWasWritten) {
  for (int i = 0; i < 3; ++i) launch(0, 0);
  ASSERT_TRUE(saved());
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  EXPECT_EQ(counted(), 104u);
  ASSERT_TRUE(saved());
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(counted(), 105u);
}

TEST_F(TakeoverTest, WhatNobodyMayHaveWrittenIsNotSaved) {
  session.reset();
  module_info.variables[0].constant = true;
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  ASSERT_TRUE(saved());
  EXPECT_EQ(control_page.log().variables_written, 0u);
  EXPECT_THAT(context->handed_over(), ElementsAre(1));
}

TEST_F(TakeoverTest, UntilTheyAreSavedVariablesAreInTheWay) {
  context->pause(0);
  launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  EXPECT_TRUE(control_page.log().computes());
  EXPECT_FALSE(control_page.log().variables_are_saved());
  context->resume(0);
  EXPECT_TRUE(saved());
}

// heddled binds no other worker then; one that is bound all the same does not go on with less.
TEST_F(TakeoverTest, WithoutThemTheSessionFails) {
  context->pause(0);
  launch(0, 0);
  ASSERT_TRUE(eventually([&] { return context->handed_over().size() == 1; }));
  start_worker();
  ASSERT_TRUE(eventually([&] { return header().fault.load() != 0; }));
  EXPECT_EQ(header().fault.load(), kCudaLaunchFailure);
  EXPECT_THAT(header().fault_text, HasSubstr("was not saved"));
}

TEST_F(TakeoverTest, ElsewhereTheyFailTheSessionByName) {
  ASSERT_TRUE(completes(symbol()));
  moved = 64;
  start_worker();
  ASSERT_TRUE(eventually([&] { return header().fault.load() != 0; }));
  EXPECT_EQ(header().fault.load(), kCudaLaunchFailure);
  EXPECT_THAT(header().fault_text, HasSubstr("the variables of module 1 have other addresses"));
}

TEST_F(TakeoverTest, VariablesOutliveATasksWorker) {
  ASSERT_TRUE(completes(launch(0, 0)));
  end_task();
  begin_next_task();
  EXPECT_FALSE(control_page.log().ended);
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(counted(), 102u) << header().fault_text;
  ASSERT_TRUE(saved());
  start_worker();  // in the middle of the task
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(counted(), 103u) << header().fault_text;
}

// However long ago the last save was.
TEST_F(TakeoverTest, TheyAreSavedAtTheTasksEnd) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(completes(launch(0, 0)));
  end_task();
  EXPECT_TRUE(control_page.log().variables_are_saved());
  begin_next_task();
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(counted(), 121u) << header().fault_text;
}

TEST_F(TakeoverTest, ALaterTasksWorkerBeginsAnewBehindAReset) {
  ASSERT_TRUE(completes(launch(0, 0)));
  simple(RecordType::kReset, 0);
  end_task();
  begin_next_task();
  EXPECT_EQ(control_page.log().modules, 0u);
  ASSERT_TRUE(completes(launch(0, 0)));
  EXPECT_EQ(counted(), 101u);
}

TEST_F(TakeoverTest, VariablesThatNoOtherWorkerCanHaveFailTheNextTask) {
  session.reset();
  module_info.allocates = true;
  start_worker();
  ASSERT_TRUE(completes(launch(0, 0)));
  end_task();
  begin_next_task();
  ASSERT_TRUE(eventually([&] { return header().fault.load() != 0; }));
  EXPECT_EQ(header().fault.load(), kCudaLaunchFailure);
  EXPECT_THAT(header().fault_text, HasSubstr("ended between two tasks"));
}

TEST_F(TakeoverTest, DeviceMallocCannotBeTakenOver) {
  session.reset();
  module_info.allocates = true;
  start_worker();
  ASSERT_TRUE(completes(launch(0, 1)));
  EXPECT_EQ(control_page.log().obstacle, protocol::Obstacle::kDeviceMalloc);
}

// "count" writes its variable by name; "nothing" what its parameter leads to.
struct TakeoverOfKnownKernels : TakeoverTest {
  void SetUp() override {
    TakeoverTest::SetUp();
    kernel_effects.resize(2);
    kernel_effects[0].name = "count";
    kernel_effects[0].variables.push_back({"counter", true, true});
    kernel_effects[1].name = "nothing";
    kernel_effects[1].written = 1;
    start_worker();
  }
  void begin_anew() {
    session.reset();
    control_page.begin_task(kTaskSerial - 1, true);
    start_worker();
  }
  // The last launch that may have written variables.
  uint64_t written() { return control_page.log().variables_written; }
  bool launches(uint32_t kernel) { return completes(launch(0, kernel)); }
};

TEST_F(TakeoverOfKnownKernels, OneThatWritesNoVariableNeedsNoSave) {
  begin_anew();
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(written(), 0u);
  ASSERT_TRUE(launches(0));
  EXPECT_EQ(written(), 2u);
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(written(), 2u);
}

TEST_F(TakeoverOfKnownKernels, OnceAVariablesAddressIsOutParametersMayLeadThere) {
  begin_anew();
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(written(), 0u);
  ASSERT_TRUE(completes(symbol()));
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(written(), 3u);
}

TEST_F(TakeoverOfKnownKernels, ItMayBeOutInAWorkerThatGoesOn) {
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(written(), 1u);
}

TEST_F(TakeoverOfKnownKernels, OneThatIsNotUnderstoodMayWriteThem) {
  kernel_effects[1].unknown = "an instruction of tomorrow";
  begin_anew();
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(written(), 1u);
}

TEST_F(TakeoverOfKnownKernels, DeviceMallocIsTheirsWhoCallIt) {
  module_info.allocates = true;
  kernel_effects[0].allocates = true;
  begin_anew();
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(control_page.log().obstacle, protocol::Obstacle::kNone);
  ASSERT_TRUE(launches(0));
  EXPECT_EQ(control_page.log().obstacle, protocol::Obstacle::kDeviceMalloc);
}

TEST_F(TakeoverTest, MoreVariablesThanAreSavedAreInTheWay) {
  session.reset();
  prepare_context = [](FakeContext& device) {
    device.variables["counter"] = {kCounter, protocol::ControlPage::kVariableBytes.value + 1};
    device.kernels["nothing"] = [](auto) { return 0u; };
  };
  start_worker();
  ASSERT_TRUE(completes(launch(0, 1)));
  EXPECT_EQ(control_page.log().obstacle, protocol::Obstacle::kVariables);
  EXPECT_EQ(header().fault.load(), 0u);
}

// A device whose next worker has variables elsewhere.
struct TakeoverElsewhere : TakeoverOfKnownKernels {
  void SetUp() override {
    TakeoverOfKnownKernels::SetUp();
    variables_stay = false;
    begin_anew();
  }
  protocol::Obstacle obstacle() { return control_page.log().obstacle; }
};

TEST_F(TakeoverElsewhere, VariablesGoWhereverTheNextWorkerHasThem) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(launches(0));
  ASSERT_TRUE(saved());
  for (const uint64_t next : {64, 256}) {
    moved = next;
    start_worker();
    ASSERT_TRUE(launches(0));
    ASSERT_TRUE(saved());
    EXPECT_EQ(obstacle(), protocol::Obstacle::kNone);
  }
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  uint64_t value = 0;
  std::memcpy(&value, device_text(kCounter + moved, sizeof value).data(), sizeof value);
  EXPECT_EQ(value, 105u);
}

TEST_F(TakeoverElsewhere, AnAddressThatTheProgramAskedForIsInTheWay) {
  ASSERT_TRUE(launches(0));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kNone);
  ASSERT_TRUE(completes(symbol()));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kAddresses);
  EXPECT_EQ(header().fault.load(), 0u);
}

TEST_F(TakeoverElsewhere, AnAddressThatAKernelKeepsIsInTheWay) {
  kernel_effects[1].keeps_module_addresses = true;
  begin_anew();
  ASSERT_TRUE(launches(0));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kNone);
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kAddresses);
}

TEST_F(TakeoverElsewhere, KernelsThatAreNotUnderstoodMayKeepOne) {
  kernel_effects.pop_back();
  begin_anew();
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kAddresses);
}

TEST_F(TakeoverElsewhere, OneOfAFunctionIsAsGood) {
  module_info.variables.clear();
  module_info.functions = true;
  kernel_effects[1].keeps_module_addresses = true;
  begin_anew();
  ASSERT_TRUE(launches(1));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kAddresses);
}

TEST_F(TakeoverElsewhere, VariablesThatBeginWithAddressesAreInTheWay) {
  module_info.variables[0].holds_addresses = true;
  begin_anew();
  ASSERT_TRUE(launches(0));
  EXPECT_EQ(obstacle(), protocol::Obstacle::kAddresses);
}

// It dies when it has noted what is done, and has shown nothing of it.
TEST_F(TakeoverTest, WhatItsForerunnerNotedIsShown) {
  live_stream(2, protocol::kStreamNonBlocking);
  map(1, kTestBase);
  simple(RecordType::kNeed, 0, 1);
  printer.print("a line\n");
  const uint64_t filled = fill(2, kTestBase, 8, 1);
  const uint64_t recorded = simple(RecordType::kEventRecord, 2, 5);
  ASSERT_TRUE(completes(recorded));
  ASSERT_GE(control_page.log().completed, recorded);
  session.reset();
  const uint64_t head = header().record_head;
  header().committed = header().completed = header().record_head = stream(2).completed = ring.events()[5].completed = 0;
  header().print_tail = 0;
  start_worker();
  EXPECT_TRUE(completes(recorded));
  EXPECT_TRUE(eventually([&] { return stream(2).completed.load() >= filled; }));
  EXPECT_TRUE(eventually([&] { return ring.events()[5].completed.load() == recorded; }));
  EXPECT_EQ(header().record_head.load(), head);
  EXPECT_EQ(header().print_tail.load(), std::string("a line\n").size());
  printer.print("another\n");
  EXPECT_EQ(std::string(ring.print_area().data(), header().print_tail.load()), "a line\nanother\n");
}

// The program had it back, or not: the segment is the worker's to give back.
TEST_F(TakeoverTest, FreesThatWereSaidAreNoted) {
  map(1, kTestBase);
  map(2, kTestBase + kSegmentBytes);
  simple(RecordType::kNeed, 0, 2);
  simple(RecordType::kFree, 0, 2);
  ASSERT_TRUE(completes(writer->last_sequence()));
  const protocol::LogState log = control_page.log();
  EXPECT_EQ(log.task, kTaskSerial);
  ASSERT_EQ(log.freed, 1u);
  EXPECT_EQ(control_page.freed(0), 2u);
}

TEST_F(TakeoverTest, ATaskThatItsForerunnerTookEnds) {
  header().idle.task = protocol::IdleTable::taken_task(kTaskSerial);
  start_worker();
  EXPECT_TRUE(eventually([&] { return told<protocol::TaskEnded>() == 1; }));
  EXPECT_TRUE(control_page.log().ended);
}

TEST_F(TakeoverTest, SegmentsThatItsForerunnerTookGoBack) {
  const Fd memory = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
  header().idle.segments[3] = 1 | protocol::IdleTable::kSegmentTaken;
  hold_back = true;
  start_worker();
  map_same_memory(1, kTestBase, memory);
  proceed();
  ASSERT_TRUE(eventually([&] { return told<protocol::SegmentFreed>() == 1; }));
  EXPECT_EQ(last<protocol::SegmentFreed>().number, 1u);
}

TEST_F(TakeoverTest, AnEventKeepsItsTime) {
  simple(RecordType::kHostCall, 1);
  live_stream(2, protocol::kStreamNonBlocking);
  const uint64_t recorded = simple(RecordType::kEventRecord, 2, 5);
  ASSERT_TRUE(eventually([&] { return ring.events()[5].completed.load() == recorded; }));
  const uint64_t time = ring.events()[5].time_ns;
  start_worker();
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == 1; }));
  stream(1).host_done = 1;
  protocol::ring_bell(header().to_worker);
  ASSERT_TRUE(completes(recorded));
  EXPECT_EQ(ring.events()[5].time_ns.load(), time);
}

// The program runs each of its calls once; the worker that had asked for this one is gone when it has returned.
TEST_F(TakeoverTest, AHostCallThatReturnsMeanwhileIsOver) {
  const uint64_t call = simple(RecordType::kHostCall, 1), behind = marker(1);
  ASSERT_TRUE(eventually([&] { return stream(1).host_reached.load() == call; }));
  EXPECT_FALSE(control_page.log().computes());
  session.reset();
  stream(1).host_done = call;
  start_worker();
  EXPECT_TRUE(completes(behind));
  EXPECT_EQ(stream(1).host_reached.load(), call);
}

TEST_F(TakeoverTest, TheRingsWordsCountForNothing) {
  ASSERT_TRUE(completes(marker()));
  header().committed = header().completed = 50;
  header().record_head = 64 * 50;
  start_worker();
  EXPECT_EQ(header().committed.load(), 1u);
  EXPECT_TRUE(completes(marker()));
  EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
}

}  // namespace
}  // namespace heddle::worker
