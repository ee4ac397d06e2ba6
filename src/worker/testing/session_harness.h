#pragma once

// A program and its heddled, for tests: writes a real ring that a real session serves on the fake device.

#include <gtest/gtest.h>

#include <functional>

#include "protocol/ring_writer.h"
#include "worker/session.h"
#include "worker/testing/fake_context.h"

namespace heddle::worker {

inline constexpr uint64_t kTestBase = 0x7e8000000000;  // free under every sanitizer
inline constexpr uint64_t kSegmentBytes = 2 * kMiB;
inline constexpr uint64_t kTaskSerial = 7;

struct SessionHarness : ::testing::Test {
  void SetUp() override;
  void TearDown() override { session.reset(); }

  // A worker takes over: a context of its own, a session, the same ring.
  void start_worker();

  // The program's side. All return the record's sequence.
  uint64_t marker(uint32_t stream = 0) { return simple(protocol::RecordType::kMarker, stream); }
  uint64_t simple(protocol::RecordType type, uint32_t stream, uint64_t a = 0, uint64_t b = 0);
  uint64_t launch(uint32_t stream, uint32_t kernel, std::vector<uint64_t> parameters = {}, uint32_t module = 1);
  // Space in the bulk area; where it is full, once everything in the ring is committed.
  uint64_t reserve_bulk(uint64_t bytes);
  char* bulk_at(uint64_t position) { return ring.bulk().data() + position; }
  uint64_t copy_in(uint32_t stream, uint64_t address, const std::string& data);
  uint64_t fill(uint32_t stream, uint64_t address, uint64_t bytes, uint8_t value);
  uint64_t append(const protocol::LaunchRecord& launch, std::span<const uint64_t> parameters);
  void live_stream(uint32_t stream, uint32_t flags = 0, int priority = 0);

  // heddled's side.
  void map(uint64_t number, uint64_t address, protocol::SegmentKind kind = protocol::SegmentKind::kDevice);
  void map_same_memory(uint64_t number, uint64_t address, const Fd& memory,
                       protocol::SegmentKind kind = protocol::SegmentKind::kDevice);
  void map_on_host(uint64_t number, uint64_t address);  // a device segment whose memory lies there
  void release_host(uint64_t number);
  void send_module(uint32_t id);
  void next_task(uint64_t serial);
  void suspend(uint64_t serial = kTaskSerial);
  void proceed();
  void fail_device(uint32_t cuda_error, const char* text);
  template <class Message>
  size_t told();  // how many of these the worker has sent so far
  template <class Message>
  Message last();

  // Sleeps until it holds; false after a time that no healthy run needs.
  bool eventually(const std::function<bool()>& holds);
  bool completes(uint64_t sequence);
  protocol::RingHeader& header() { return ring.header(); }
  protocol::StreamSlot& stream(uint32_t index) { return ring.streams()[index]; }
  std::string device_text(uint64_t address, size_t bytes);
  protocol::Usage usage() const;

  Fd ring_fd, control_fd;
  protocol::ControlPage control_page;
  protocol::RingMemory ring;
  std::unique_ptr<protocol::RingWriter> writer;
  uint64_t bulk_used = 0;
  std::unique_ptr<Outbox> outbox;
  std::vector<Outbox::Message> messages;
  protocol::Window window{kTestBase, 64 * kMiB, 16 * kMiB};
  Mapping addresses;
  DeviceModel model;
  image::ModuleInfo module_info;
  std::vector<image::KernelEffects> kernel_effects;  // empty: nothing is known
  Printer printer;
  std::unique_ptr<FakeContext> context;
  std::function<void(FakeContext&)> prepare_context;
  bool shared_faults = false;
  bool variables_stay = true;
  bool guarded = false;
  Bytes undo{};                // of the control page: epochs are kept where there is some
  Duration long_from{};        // and protect what takes so long; 0: everything
  uint32_t save_permille = 0;  // of the time that copies may take; 0: any
  std::unique_ptr<Session> session;
  uint64_t bound_serial = kTaskSerial;  // of the next worker's task
  bool hold_back = false;               // the next worker is not told to proceed
  std::vector<uint32_t> modules;        // that were sent: every worker gets them
};

template <class Message>
size_t SessionHarness::told() {
  for (auto& message : outbox->take()) messages.push_back(message);
  size_t count = 0;
  for (const auto& message : messages) count += std::holds_alternative<Message>(message);
  return count;
}

template <class Message>
Message SessionHarness::last() {
  Message found{};
  told<Message>();
  for (const auto& message : messages) {
    if (const auto* match = std::get_if<Message>(&message)) found = *match;
  }
  return found;
}

}  // namespace heddle::worker
