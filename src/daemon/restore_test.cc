// What comes back from the vault, without processes.

#include "daemon/restore.h"

#include <gtest/gtest.h>

#include "daemon/testing/books.h"

namespace heddle::daemon {
namespace {

constexpr uint64_t kJob = 1, kSession = 2, kRing = 3, kTask = 4;

class RestoreTest : public ::testing::Test, protected testing::Books {
 protected:
  RestoreTest() : Books("restore_test") { registry_.devices.emplace_back(); }
  void add(NoteKind kind, uint64_t key, std::string note, Fd descriptor = {}) {
    items_.push_back({kind, key, std::move(note), std::move(descriptor)});
  }
  void add_session() {
    add(NoteKind::kJob, kJob, write_note(JobNote{}));
    SessionNote note{};
    note.job = kJob;
    note.device_count = note.seen_devices = 1;
    add(NoteKind::kSession, kSession, write_note(note), std::move(*create_memfd("process", Bytes{4096})));
  }
  void add_ring() {
    RingNote note{};
    note.session = kSession;
    note.assigned_device = -1;
    auto ring = protocol::RingMemory::create(shared_.config.ring);
    ASSERT_TRUE(ring) << ring.error().text;
    add(NoteKind::kRing, kRing, write_note(note), std::move(ring->first));
  }
  void add_control() {
    ControlNote note{};
    note.session = kSession;
    auto page = protocol::ControlPage::create();
    ASSERT_TRUE(page) << page.error().text;
    add(NoteKind::kControl, kRing, write_note(note), std::move(page->first));
  }
  void add_granted_task() {
    TaskNote note{};
    note.session = kSession;
    note.serial = 1;
    note.place = TaskNote::kGranted;
    add(NoteKind::kTask, kTask, write_note(note));
  }
  TakenOver taken_over() { return restore(shared_, std::move(items_)); }
  const Task* task() { return registry_.find_session(SessionId{kSession})->devices[0].task.get(); }

  std::vector<RestoredItem> items_;
};

TEST_F(RestoreTest, ASessionAtWorkComesBack) {
  add_session();
  add_ring();
  add_control();
  add_granted_task();
  EXPECT_TRUE(taken_over().broken.empty());
  ASSERT_NE(task(), nullptr);
  EXPECT_EQ(task()->state, TaskState::kPlaced);
}

TEST_F(RestoreTest, AWorkerComesBackAsWhatItWas) {
  for (const uint32_t terminating : {0u, 1u}) {
    WorkerNote note{};
    note.session = kSession;
    note.terminating = terminating;
    note.kind = static_cast<uint32_t>(terminating ? Worker::Kind::kBatch : Worker::Kind::kOutsideMps);
    add(NoteKind::kWorker, 10 + terminating, write_note(note), std::move(*create_memfd("process", Bytes{4096})));
  }
  const auto workers = taken_over().workers;
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_FALSE(workers[0].terminating);
  EXPECT_TRUE(workers[1].terminating);
  EXPECT_EQ(workers[0].kind, Worker::Kind::kOutsideMps);
  EXPECT_EQ(workers[1].kind, Worker::Kind::kBatch);
}

// Its size is another, and so its worker's protocol; a session stands first in all of them.
TEST_F(RestoreTest, ARingsNoteOfAnotherVersionBreaksItsSession) {
  add_session();
  std::string older(32, '\0');
  older[0] = kSession;
  auto ring = protocol::RingMemory::create(shared_.config.ring);
  ASSERT_TRUE(ring) << ring.error().text;
  add(NoteKind::kRing, kRing, older, std::move(ring->first));
  EXPECT_EQ(taken_over().broken, std::set{SessionId{kSession}});
}

TEST_F(RestoreTest, ATaskWithoutItsRingBreaksItsSessionAndIsDropped) {
  add_session();
  add_granted_task();
  EXPECT_EQ(taken_over().broken, std::set{SessionId{kSession}});
  EXPECT_EQ(task(), nullptr);
}

TEST_F(RestoreTest, ARingWithoutItsControlPageBreaksItsSession) {
  add_session();
  add_ring();
  EXPECT_EQ(taken_over().broken, std::set{SessionId{kSession}});
}

}  // namespace
}  // namespace heddle::daemon
