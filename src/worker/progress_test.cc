#include "worker/progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace heddle::worker {
namespace {

// Whoever has seen that may say to heddled that the worker has nothing left to do, and the process may end before the
// thread that has finished the record comes any further.
TEST(Progress, WhatIsDoneStandsOnTheControlPageBeforeAnybodySeesIt) {
  constexpr uint64_t kRecords = 200'000;
  auto ring = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{256 * kKiB}});
  auto control = protocol::ControlPage::create();
  ASSERT_TRUE(ring && control);
  const auto page = protocol::ControlPage::attach(control->first);
  auto outbox = Outbox::create();
  ASSERT_TRUE(page && outbox);
  Commit commit(ring->second, std::move(control->second), **outbox);
  const auto progress = Progress::create(ring->second, commit);
  ASSERT_TRUE(progress) << progress.error().text;
  std::atomic<uint64_t> missing{0};
  std::thread looks([&] {
    for (uint64_t seen = 0; seen < kRecords;) {
      seen = (*progress)->completed();
      const uint64_t noted = page->log().completed;
      if (noted < seen) missing.store(seen);
    }
  });
  protocol::Record record{};
  record.header.type = protocol::RecordType::kNeed;
  for (uint64_t sequence = 1; sequence <= kRecords; ++sequence) {
    record.header.sequence = sequence;
    record.end = sequence * protocol::kRecordAlign;
    (*progress)->enter(record);
    (*progress)->finish(sequence);
  }
  looks.join();
  EXPECT_EQ(missing.load(), 0u) << "was done, and not noted";
}

}  // namespace
}  // namespace heddle::worker
