// A guarded worker hands over what can be run again alone: the rest is the next worker's, which is not guarded.

#include <gmock/gmock.h>

#include "worker/testing/epoch_harness.h"

namespace heddle::worker {
namespace {

using protocol::NeedsApart;
using protocol::Obstacle;
using protocol::RecordType;
using protocol::Suspended;

struct GuardTest : EpochHarness {
  void SetUp() override {
    guarded = true;
    pinned_memory = std::move(*create_memfd("pinned", Bytes{kSegmentBytes}));
    EpochHarness::SetUp();
    begin();
  }
  // A worker that has pinned memory mapped, too: what reaches that cannot be run again.
  void begin() {
    hold_back = true;
    start_worker();
    map_same_memory(1, kFirst, memory[0]);
    map_same_memory(2, kSecond, memory[1]);
    map_same_memory(3, pinned(), pinned_memory, protocol::SegmentKind::kHost);
    proceed();
  }
  uint64_t pinned() const { return kTestBase + window.device_bytes; }
  // The record is kept back, and everything before it is committed.
  void expect_kept_back(uint64_t sequence) {
    ASSERT_TRUE(eventually([&] { return told<NeedsApart>() == 1; }));
    EXPECT_EQ(last<NeedsApart>().serial, kTaskSerial);
    EXPECT_EQ(control_page.log().completed, sequence - 1);
    EXPECT_LT(control_page.log().handed_over, sequence);
    EXPECT_FALSE(is_unprotected());
    EXPECT_EQ(control_page.log().obstacle, Obstacle::kNone);
  }
  // As heddled answers.
  void goes_on_apart() {
    suspend();
    ASSERT_TRUE(eventually([&] { return told<Suspended>() == 1; }));
    ASSERT_EQ(last<Suspended>().given_up, 1u);
    guarded = false;
    begin();
    ASSERT_TRUE(completes(writer->last_sequence()));
    EXPECT_EQ(header().fault.load(), 0u) << header().fault_text;
  }

  Fd pinned_memory;
};

TEST_F(GuardTest, WhatCanBeRunAgainGoesOn) {
  run(kTakeSlot, kSecond + 4096, 7);
  for (const uint32_t kernel : {kAdd, kMove, kCountUp, kPrint}) run(kernel, kFirst, kSecond);
  ASSERT_TRUE(commits());
  EXPECT_EQ(told<NeedsApart>(), 0u);
}

TEST_F(GuardTest, WhatCannotIsKeptForAnotherWorker) {
  run(kAdd, kFirst, 5);
  const uint64_t kept = run(kAdd, pinned(), 1);
  run(kAdd, kFirst, 10);
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
  EXPECT_EQ(at(kFirst), 5u);
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
  EXPECT_EQ(at(kFirst), 15u);
  EXPECT_EQ(at(pinned()), 1u);
  EXPECT_EQ(told<NeedsApart>(), 1u);
}

// The program waits for all that comes before, and is shown it.
TEST_F(GuardTest, WhatWasDoneBeforeIsShown) {
  const uint64_t before = run(kAdd, kFirst, 5);
  run(kAdd, pinned(), 1);
  EXPECT_TRUE(completes(before));
}

TEST_F(GuardTest, WhatComesBeforeIsWaitedForAndProtected) {
  context->pause(1);
  ASSERT_TRUE(handed_over(run(kAdd, kFirst, 5)));
  const uint64_t kept = run(kAdd, pinned(), 1);
  EXPECT_FALSE(is_unprotected());
  EXPECT_EQ(told<NeedsApart>(), 0u);
  context->resume(1);
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
}

// It may be what those wait for.
TEST_F(GuardTest, OthersDoNotWaitForItForEver) {
  context->pause(2);
  ASSERT_TRUE(handed_over(run(kWait, 0, 0, 2)));
  const uint64_t passed = run(kAdd, pinned(), 1);
  const uint64_t other = run(kAdd, kSecond, 1, 2);
  ASSERT_TRUE(handed_over(passed));
  ASSERT_TRUE(handed_over(other)) << "else it may be what leaves";
  EXPECT_TRUE(is_unprotected());
  context->resume(2);
  ASSERT_TRUE(commits());
  const uint64_t kept = run(kAdd, kFirst, 1);  // although it could be run again
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
}

TEST_F(GuardTest, DeviceMallocIsKeptBack) {
  session.reset();
  module_info.allocates = true;
  kernel_effects[kAdd].allocates = true;
  begin();
  const uint64_t kept = run(kAdd, kFirst, 5);
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
  EXPECT_EQ(at(kFirst), 5u);
  EXPECT_EQ(control_page.log().obstacle, Obstacle::kDeviceMalloc);
}

TEST_F(GuardTest, ASymbolsAddressIsKeptBackWhereVariablesMove) {
  session.reset();
  variables_stay = false;
  begin();
  const uint64_t position = reserve_bulk(16);
  auto* record = writer->reserve<protocol::SymbolRecord>(RecordType::kSymbol, 0);
  record->module = 1;
  record->index = 0;
  record->position = position;
  const uint64_t kept = writer->publish();
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
  EXPECT_EQ(control_page.log().obstacle, Obstacle::kAddresses);
}

TEST_F(GuardTest, ModulesWithAddressesInTheirVariablesAreKeptBack) {
  session.reset();
  variables_stay = false;
  module_info.variables[0].holds_addresses = true;
  begin();
  const uint64_t kept = run(kAdd, kFirst, 5);
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
}

// Else they would be saved every so many commits.
TEST_F(GuardTest, VariablesAreSavedAtEachCommit) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(completes(run(kCountUp)));
    EXPECT_TRUE(control_page.log().variables_are_saved());
  }
  EXPECT_EQ(told<NeedsApart>(), 0u);
}

// Somebody waits for what is done, while other work of the epoch's goes on for long: that can be lost from then on.
TEST_F(GuardTest, WhatWasShownTooEarlyHasTheTaskLeave) {
  hold_open();
  const uint64_t added = run(kAdd, kFirst, 5);
  ASSERT_TRUE(handed_over(added));
  header().wanted = added;
  ASSERT_TRUE(eventually([&] {
    protocol::ring_bell(header().to_worker);
    return is_unprotected();
  }));
  context->resume(2);
  ASSERT_TRUE(commits());
  const uint64_t kept = run(kAdd, kFirst, 5);
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
  EXPECT_EQ(at(kFirst), 10u);
}

struct GuardBudgetTest : GuardTest {
  void SetUp() override {
    save_permille = 1;
    GuardTest::SetUp();
  }
};

TEST_F(GuardBudgetTest, WhatWouldCostTooMuchIsKeptBack) {
  context->mib_takes = std::chrono::seconds(1);
  ASSERT_TRUE(completes(run(kAdd, kFirst, 1)));
  ASSERT_TRUE(completes(marker(1)));
  ASSERT_TRUE(commits());
  const uint64_t sum = at(kFirst), kept = run(kAdd, kFirst, 1);
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(kept));
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
  EXPECT_EQ(at(kFirst), sum + 1);
}

// A save takes 15 ms here, so that all of the first second's time is gone after a few.
TEST_F(GuardBudgetTest, WhoseVariablesTakeTooMuchTimeLeaves) {
  context->copy_lasts = std::chrono::milliseconds(15);
  uint64_t last = 0;
  for (int i = 0; i < 100 && told<NeedsApart>() == 0; ++i) {
    last = run(kCountUp);
    if (!eventually([&] { return header().completed.load() >= last || told<NeedsApart>() == 1; })) break;
  }
  context->copy_lasts = Duration::zero();
  ASSERT_NO_FATAL_FAILURE(expect_kept_back(last));
  const uint64_t counted = at(kVariableAt);
  EXPECT_GT(counted, 103u) << "not by one commit";
  ASSERT_NO_FATAL_FAILURE(goes_on_apart());
  EXPECT_EQ(at(kVariableAt), counted + 1);
}

}  // namespace
}  // namespace heddle::worker
