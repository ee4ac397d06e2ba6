#include "worker/testing/session_harness.h"

#include <algorithm>

#include "core/testing/patience.h"

namespace heddle::worker {
namespace {

template <class Message>
protocol::Packet packet(const Message& message, const Fd* descriptor = nullptr) {
  protocol::Packet packet;
  packet.type = Message::kType;
  packet.body.resize(sizeof message);
  std::memcpy(packet.body.data(), &message, sizeof message);
  if (descriptor) packet.descriptors.push_back(std::move(*descriptor->duplicate()));
  return packet;
}

}  // namespace

void SessionHarness::SetUp() {
  auto made = protocol::RingMemory::create({Bytes{128 * kKiB}, Bytes{256 * kKiB}});
  ASSERT_TRUE(made) << made.error().text;
  ring_fd = std::move(made->first);
  ring = std::move(made->second);
  writer = std::make_unique<protocol::RingWriter>(ring);
  auto control = protocol::ControlPage::create(undo, long_from, save_permille);
  ASSERT_TRUE(control) << control.error().text;
  control_fd = std::move(control->first);
  control_page = std::move(control->second);
  outbox = std::move(*Outbox::create());
  auto reserved = reserve_addresses(window.base, Bytes{window.device_bytes + window.host_bytes});
  ASSERT_TRUE(reserved) << reserved.error().text;
  addresses = std::move(*reserved);
  model = *device_preset("P100");
}

void SessionHarness::start_worker() {
  session.reset();
  // The old worker's process is gone, and its mappings with it.
  addresses.reset();
  addresses = std::move(*reserve_addresses(window.base, Bytes{window.device_bytes + window.host_bytes}));
  context = std::make_unique<FakeContext>();
  if (prepare_context) prepare_context(*context);
  const auto describe = [this](std::span<const std::byte>, uint32_t) -> Result<image::ModuleInfo> {
    return module_info;
  };
  const auto effects = [this](std::span<const std::byte>, uint32_t) -> Result<std::vector<image::KernelEffects>> {
    if (kernel_effects.empty()) return fail(ErrorCode::kNotFound, "nothing is known of the kernels");
    return kernel_effects;
  };
  auto started =
      Session::start(ring_fd, control_fd,
                     {model, window, bound_serial, {describe, effects}, shared_faults, variables_stay, true, guarded},
                     *context, printer, *outbox);
  ASSERT_TRUE(started) << started.error().text;
  session = std::move(*started);
  for (const uint32_t module : std::vector(modules)) send_module(module);
  if (!hold_back) proceed();
}

uint64_t SessionHarness::simple(protocol::RecordType type, uint32_t stream, uint64_t a, uint64_t b) {
  protocol::RecordHeader* record;
  while (!(record = writer->reserve<protocol::RecordHeader>(type, stream))) {
    if (!eventually([this] { return header().committed.load() == writer->last_sequence(); })) return 0;
  }
  record->a = a;
  record->b = b;
  return writer->publish();
}

uint64_t SessionHarness::append(const protocol::LaunchRecord& launch, std::span<const uint64_t> parameters) {
  auto* record = writer->reserve<protocol::LaunchRecord>(protocol::RecordType::kLaunch, launch.header.stream,
                                                         parameters.size_bytes());
  if (!record) return 0;
  const protocol::RecordHeader kept = record->header;
  *record = launch;
  record->header = kept;
  if (!parameters.empty()) std::memcpy(record + 1, parameters.data(), parameters.size_bytes());
  return writer->publish();
}

uint64_t SessionHarness::launch(uint32_t stream, uint32_t kernel, std::vector<uint64_t> parameters, uint32_t module) {
  protocol::LaunchRecord record{};
  record.header.stream = stream;
  record.module = module;
  record.kernel = kernel;
  for (int i = 0; i < 3; ++i) record.grid[i] = record.block[i] = 1;
  record.parameter_bytes = static_cast<uint32_t>(parameters.size() * sizeof(uint64_t));
  return append(record, parameters);
}

uint64_t SessionHarness::reserve_bulk(uint64_t bytes) {
  if (bulk_used + bytes > ring.bulk().size()) {
    EXPECT_TRUE(eventually([this] { return header().committed.load() == writer->last_sequence(); }));
    bulk_used = 0;
  }
  return std::exchange(bulk_used, round_up(bulk_used + bytes, 64));
}

uint64_t SessionHarness::copy_in(uint32_t stream, uint64_t address, const std::string& data) {
  const uint64_t position = reserve_bulk(data.size());
  std::memcpy(bulk_at(position), data.data(), data.size());
  auto* record = writer->reserve<protocol::CopyRecord>(protocol::RecordType::kCopy, stream);
  if (!record) return 0;
  record->to = {protocol::Place::kWindow, 0, 0, 0, address, 0, 0};
  record->from = {protocol::Place::kBulk, 0, 0, 0, position, 0, 0};
  record->width = data.size();
  record->height = record->depth = 1;
  return writer->publish();
}

uint64_t SessionHarness::fill(uint32_t stream, uint64_t address, uint64_t bytes, uint8_t value) {
  auto* record = writer->reserve<protocol::FillRecord>(protocol::RecordType::kFill, stream);
  if (!record) return 0;
  record->to = {protocol::Place::kWindow, 0, 0, 0, address, 0, 0};
  record->width = bytes;
  record->height = record->depth = 1;
  record->value = value;
  record->element_bytes = 1;
  record->reserved = 0;
  return writer->publish();
}

void SessionHarness::live_stream(uint32_t index, uint32_t flags, int priority) {
  stream(index).priority = priority;
  stream(index).flags = protocol::kStreamLive | flags;
}

void SessionHarness::map(uint64_t number, uint64_t address, protocol::SegmentKind kind) {
  const Fd memory = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
  map_same_memory(number, address, memory, kind);
}

void SessionHarness::map_on_host(uint64_t number, uint64_t address) {
  const Fd memory = std::move(*create_memfd("segment", Bytes{kSegmentBytes}));
  session->post(
      packet(protocol::MapSegment{number, address, kSegmentBytes, protocol::SegmentKind::kDevice, 0, 1}, &memory));
}

void SessionHarness::map_same_memory(uint64_t number, uint64_t address, const Fd& memory, protocol::SegmentKind kind) {
  session->post(packet(protocol::MapSegment{number, address, kSegmentBytes, kind, 0}, &memory));
}

void SessionHarness::release_host(uint64_t number) {
  session->post(packet(protocol::MapSegment{number, 0, 0, protocol::SegmentKind::kHost, 1}));
}

void SessionHarness::send_module(uint32_t id) {
  if (std::find(modules.begin(), modules.end(), id) == modules.end()) modules.push_back(id);
  const Fd memory = std::move(*create_memfd("module", Bytes{4096}));
  protocol::Module module;
  module.module = id;
  module.bytes = 4096;
  session->post(packet(module, &memory));
}

void SessionHarness::suspend(uint64_t serial) {
  session->post(packet(protocol::Suspend{serial}));
}

void SessionHarness::next_task(uint64_t serial) {
  session->post(packet(protocol::NextTask{serial}));
}

void SessionHarness::proceed() {
  session->post(packet(protocol::Proceed{}));
}

void SessionHarness::fail_device(uint32_t cuda_error, const char* text) {
  protocol::DeviceFault fault{.cuda_error = cuda_error};
  protocol::set_text(fault.text, text);
  session->post(packet(fault));
}

bool SessionHarness::eventually(const std::function<bool()>& holds) {
  Patience patience(std::chrono::seconds(60));
  while (!patience.is_over()) {
    const uint32_t seen = protocol::read_bell(header().to_client);
    if (holds()) return true;
    protocol::wait_bell(header().to_client, seen, std::chrono::milliseconds(2));
  }
  return false;
}

bool SessionHarness::completes(uint64_t sequence) {
  return eventually([&] { return header().completed.load() >= sequence; });
}

protocol::Usage SessionHarness::usage() const {
  protocol::Usage usage;
  EXPECT_TRUE(control_page.read(usage));
  return usage;
}

std::string SessionHarness::device_text(uint64_t address, size_t bytes) {
  return context->read(address, bytes);
}

}  // namespace heddle::worker
