#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "protocol/ring_reader.h"
#include "protocol/ring_writer.h"

namespace heddle::protocol {
namespace {

struct Ring : testing::Test {
  void SetUp() override {
    auto made = RingMemory::create({Bytes{128 * kKiB}, Bytes{128 * kKiB}});
    ASSERT_TRUE(made) << made.error().text;
    fd = std::move(made->first);
    memory = std::move(made->second);
  }
  // What a worker does when everything up to `record` is done.
  void commit(const Record& record) {
    memory.header().committed.store(record.header.sequence);
    memory.header().record_head.store(record.end);
  }
  Fd fd;
  RingMemory memory;
};

TEST_F(Ring, CarriesRecordsInOrderAroundTheEnd) {
  RingWriter writer(memory);
  auto reader = RingReader::attach(memory);
  ASSERT_TRUE(reader);
  Record record;
  std::mt19937 random(7);
  for (uint64_t n = 1; n <= 20000; ++n) {
    const size_t parameters = random() % 2000;
    auto* launch = writer.reserve<LaunchRecord>(RecordType::kLaunch, 3, parameters);
    ASSERT_NE(launch, nullptr);
    launch->kernel = static_cast<uint32_t>(n);
    EXPECT_EQ(writer.publish(), n);
    auto got = reader->next(record);
    ASSERT_TRUE(got && *got) << got.error().text;
    EXPECT_EQ(record.header.sequence, n);
    EXPECT_EQ(record.as<LaunchRecord>().kernel, n);
    commit(record);
  }
  EXPECT_FALSE(*reader->next(record));
}

TEST_F(Ring, IsFullUntilRecordsAreCommitted) {
  RingWriter writer(memory);
  uint64_t written = 0;
  while (writer.reserve<RecordHeader>(RecordType::kMarker, 0)) {
    writer.publish();
    ++written;
  }
  EXPECT_EQ(written, 128 * kKiB / round_up(sizeof(RecordHeader), kRecordAlign));
  auto reader = RingReader::attach(memory);
  Record record;
  ASSERT_TRUE(*reader->next(record));
  EXPECT_EQ(writer.reserve<RecordHeader>(RecordType::kMarker, 0), nullptr);
  commit(record);
  EXPECT_NE(writer.reserve<RecordHeader>(RecordType::kMarker, 0), nullptr);
}

TEST_F(Ring, ANewWorkerStartsBehindWhatWasCommitted) {
  RingWriter writer(memory);
  for (int n = 0; n < 3; ++n) {
    ASSERT_NE(writer.reserve<RecordHeader>(RecordType::kMarker, 0), nullptr);
    writer.publish();
  }
  Record record;
  {
    auto first = RingReader::attach(memory);
    ASSERT_TRUE(*first->next(record));
    commit(record);
    ASSERT_TRUE(*first->next(record));  // taken, but never committed: the worker died
  }
  auto second = RingReader::attach(memory);
  ASSERT_TRUE(*second->next(record));
  EXPECT_EQ(record.header.sequence, 2u);
}

TEST_F(Ring, GarbageIsAnErrorNotACrash) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 2000; ++round) {
    for (char& byte : memory.records().first(4096)) byte = static_cast<char>(random());
    if (round % 2) {  // let some of it look like a record
      auto* header = reinterpret_cast<RecordHeader*>(memory.records().data());
      header->type = static_cast<RecordType>(1 + random() % 14);
      header->bytes = static_cast<uint32_t>(random() % 256);
      header->sequence = 1;
    }
    memory.header().record_tail.store(random() % 4 ? random() % 4096 : random());
    auto reader = RingReader::attach(memory);
    Record record;
    while (reader) {
      auto got = reader->next(record);
      if (!got || !*got) break;
    }
  }
}

TEST_F(Ring, RefusesMemoryThatIsNotARing) {
  auto other = create_memfd("other", Bytes{1 << 20});
  EXPECT_EQ(RingMemory::attach(*other).error().code, ErrorCode::kProtocol);
  memory.header().bulk_bytes *= 2;
  EXPECT_EQ(RingMemory::attach(fd).error().code, ErrorCode::kProtocol);
}

TEST_F(Ring, WakesASleepingWorker) {
  std::thread worker([this] {
    auto reader = RingReader::attach(memory);
    Record record;
    for (uint64_t taken = 0; taken < 1000;) {
      const uint32_t seen = read_bell(memory.header().to_worker);
      auto got = reader->next(record);
      ASSERT_TRUE(got);
      if (*got) {
        ++taken;
        commit(record);
        ring_bell(memory.header().to_client);
      } else {
        wait_bell(memory.header().to_worker, seen, Duration(-1));
      }
    }
  });
  RingWriter writer(memory);
  for (uint64_t n = 1; n <= 1000; ++n) {
    while (!writer.reserve<RecordHeader>(RecordType::kMarker, 0)) std::this_thread::yield();
    writer.publish();
    if (n % 3 == 0) continue;
    for (;;) {
      const uint32_t seen = read_bell(memory.header().to_client);
      if (memory.header().committed.load() >= n) break;
      wait_bell(memory.header().to_client, seen, Duration(-1));
    }
  }
  worker.join();
}

}  // namespace
}  // namespace heddle::protocol
