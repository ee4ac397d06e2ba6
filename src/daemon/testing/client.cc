#include "daemon/testing/client.h"

#include "core/testing/patience.h"
#include "protocol/bell.h"

namespace heddle::daemon::testing {

using namespace protocol;

Result<TestClient> TestClient::open(const std::string& path, uint64_t job, uint64_t secret) {
  TestClient client;
  auto socket = connect_to(path);
  if (!socket) return tl::unexpected(socket.error());
  client.socket_ = std::move(*socket);
  Hello hello;
  hello.job = job;
  hello.job_secret = secret;
  set_text(hello.program, "test");
  HEDDLE_TRY(client.socket_.send(hello));
  auto welcome = client.socket_.expect<Welcome>(kPatience);
  if (!welcome) return tl::unexpected(welcome.error());
  client.welcome_ = *welcome;
  return client;
}

Status TestClient::resume(const std::string& path) {
  Patience patience(kPatience);
  for (;;) {
    auto socket = connect_to(path);
    if (!socket) return tl::unexpected(socket.error());
    socket_ = std::move(*socket);
    Hello hello;
    hello.resume_session = welcome_.session;
    hello.resume_secret = welcome_.secret;
    const Status sent = socket_.send(hello);
    auto welcome = sent ? socket_.expect<Welcome>(kPatience) : tl::unexpected(sent.error());
    if (welcome) return {};
    // Accepted by the kernel, and then by nobody: that heddled has died.
    if (welcome.error().code != ErrorCode::kPeerDied || patience.is_over()) return tl::unexpected(welcome.error());
  }
}

Status TestClient::open_device(uint32_t virtual_device) {
  HEDDLE_TRY(ask(OpenDevice{0, virtual_device, 0, window()}));
  std::vector<Fd> descriptors;
  auto opened = socket_.expect<DeviceOpened>(kPatience, &descriptors);
  if (!opened) return tl::unexpected(opened.error());
  if (descriptors.size() != 1) return fail(ErrorCode::kProtocol, "no ring came");
  auto ring = RingMemory::attach(descriptors.front());
  if (!ring) return tl::unexpected(ring.error());
  ring_ = std::make_unique<RingMemory>(std::move(*ring));
  writer_ = std::make_unique<RingWriter>(*ring_);
  return {};
}

Status TestClient::declare(uint64_t number, uint64_t address, Bytes bytes, bool answer) {
  const DeclareSegment segment{0, number, address, bytes.value, SegmentKind::kDevice};
  return answer ? ask(segment) : socket_.send(segment);
}

Status TestClient::begin(uint64_t serial, uint64_t blocks) {
  BeginTask task{serial};
  task.need.blocks = blocks;
  task.need.threads_per_block = 128;
  return socket_.send(task);
}

Result<SegmentAnswer> TestClient::answer() {
  return socket_.expect<SegmentAnswer>(kPatience);
}

void TestClient::record(RecordType type, uint64_t a) {
  auto* header = writer_->reserve<RecordHeader>(type, 0);
  header->a = a;
  publish();
}

void TestClient::publish() {
  writer_->publish();
  // It hears of a heddled that has died when it looks.
  if (header().binding.load() == static_cast<uint32_t>(Binding::kAway)) (void)socket_.send(WorkWaits{0});
}

void TestClient::host_calls_return() {
  ring_->streams()[0].host_done.store(writer_->last_sequence());
}

void TestClient::fill(uint64_t address, uint32_t value) {
  auto* record = writer_->reserve<FillRecord>(RecordType::kFill, 0);
  record->to.place = Place::kWindow;
  record->to.address = address;
  record->width = record->height = record->depth = record->element_bytes = 1;
  record->value = value;
  publish();
}

template <class Condition>
bool TestClient::wait_until(Condition condition) {
  Patience patience(kPatience);
  for (;;) {
    const uint32_t seen = read_bell(header().to_client);
    if (condition()) return true;
    if (patience.is_over()) return false;
    wait_bell(header().to_client, seen, std::chrono::milliseconds(100));
  }
}

bool TestClient::wait_binding(Binding binding) {
  return wait_until([&] { return header().binding.load() == static_cast<uint32_t>(binding); });
}

bool TestClient::wait_completed(uint64_t sequence) {
  return wait_until([&] { return header().completed.load() >= sequence; });
}

bool TestClient::wait_fault(uint32_t code) {
  return wait_until([&] { return header().fault.load() == code; });
}

std::string TestClient::error_text() {
  return get_text(header().error_text);
}

}  // namespace heddle::daemon::testing
