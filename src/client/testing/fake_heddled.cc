#include "client/testing/fake_heddled.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace heddle::client::testing {

using namespace protocol;

namespace {

// A window that address sanitizers leave free too.
constexpr Window kWindow{0x7e8000000000, 448 * kGiB, 32 * kGiB};  // as heddled's last one

DeviceModel model() {
  DeviceModel device = *device_preset("P100");
  device.memory_bytes = kGiB;
  return device;
}

std::string words(const char* what, uint64_t a) {
  return stringf("%s %lu", what, static_cast<unsigned long>(a));
}

void place_memory(uint64_t address, uint64_t bytes) {
  void* const placed = ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (placed == MAP_FAILED) std::abort();  // a test without its memory means nothing
}

}  // namespace

FakeHeddled::FakeHeddled(FakeOptions options) : options_(options) {
  path_ = stringf("/tmp/heddle-client-test-%d", ::getpid());
  listener_ = std::move(*listen_at(path_, 0600));
  ::setenv("HEDDLE_SOCKET", path_.c_str(), 1);
  ::setenv("HEDDLE_LOST_AFTER", "5s", 1);
  for (uint32_t i = 0; i < options.devices + options.side_devices; ++i) devices_.push_back(std::make_unique<Device>());
  server_ = std::thread([this] { serve(); });
}

FakeHeddled::~FakeHeddled() {
  stopping_ = true;
  server_.join();
  for (auto& device : devices_) {
    if (device->ring) ring_bell(device->ring->header().to_worker);
    if (device->worker.joinable()) device->worker.join();
  }
  ::unlink(path_.c_str());
}

void FakeHeddled::set_kernel(Kernel kernel) {
  const std::lock_guard lock(mutex_);
  kernel_ = std::move(kernel);
}

void FakeHeddled::hold() {
  held_ = true;
}

void FakeHeddled::go() {
  held_ = false;
}

void FakeHeddled::fault_next(uint32_t cuda_error, const std::string& text) {
  const std::lock_guard lock(mutex_);
  fault_text_ = text;
  fault_ = cuda_error;
}

void FakeHeddled::allow_idle(bool allowed) {
  for (auto& device : devices_) {
    if (device->ring) device->ring->header().idle_allowed = allowed ? 1 : 0;
  }
}

bool FakeHeddled::serves_nobody() const {
  return std::all_of(devices_.begin(), devices_.end(), [](const auto& device) { return device->serial == 0; });
}

void FakeHeddled::say_away(bool away) {
  devices_.front()->ring->header().binding = static_cast<uint32_t>(away ? Binding::kAway : Binding::kBound);
}

void FakeHeddled::reclaim() {
  Device& device = *devices_.front();
  const uint64_t asked = ++device.ring->header().reclaims;
  ring_bell(device.ring->header().to_worker);
  while (device.reclaims != asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// True where the task is over. What the program has taken back goes with its next task.
bool FakeHeddled::reclaim_idle(Device& device) {
  IdleTable& idle = device.ring->header().idle;
  uint64_t offered = IdleTable::offered_task(device.serial);
  const bool ends = idle.task.compare_exchange_strong(offered, IdleTable::taken_task(device.serial));
  const std::lock_guard lock(device.mutex);
  for (auto& slot : idle.segments) {
    uint64_t number = slot.load();
    if (!device.mapped.contains(number)) continue;
    if (!slot.compare_exchange_strong(number, number | IdleTable::kSegmentTaken)) continue;
    device.mapped.erase(number);
    note(words("reclaimed", number));
  }
  if (!ends) return false;
  note(words("ended", device.serial));
  for (auto each = device.mapped.begin(); each != device.mapped.end();) {
    const bool host = each->second.kind == SegmentKind::kHost;
    if (!host) device.waiting.push_back(each->second);
    each = host ? std::next(each) : device.mapped.erase(each);
  }
  return true;
}

void FakeHeddled::restart() {
  dropping_ = true;
  while (dropping_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void FakeHeddled::note(const std::string& entry) {
  const std::lock_guard lock(mutex_);
  log_.push_back(entry);
}

std::vector<std::string> FakeHeddled::log() {
  const std::lock_guard lock(mutex_);
  return log_;
}

size_t FakeHeddled::count(const std::string& entry) {
  const auto all = log();
  return static_cast<size_t>(std::count(all.begin(), all.end(), entry));
}

void FakeHeddled::serve() {
  std::vector<Socket> clients;
  while (!stopping_) {
    if (dropping_) {
      clients.clear();
      unanswered_.clear();
      dropping_ = false;
    }
    for (Socket& client : clients) answer_held(client);
    std::vector<pollfd> events{{listener_.get(), POLLIN, 0}};
    for (const Socket& client : clients) events.push_back({client.get(), POLLIN, 0});
    ::poll(events.data(), events.size(), 5);
    for (size_t i = 1; i < events.size(); ++i) {
      if (!events[i].revents) continue;
      auto packet = clients[i - 1].receive();
      if (!packet) {
        unanswered_.erase(clients[i - 1].get());
        clients[i - 1].close();
      } else if (*packet) {
        handle(clients[i - 1], **packet);
      }
    }
    std::erase_if(clients, [](const Socket& client) { return !client; });
    if (!events[0].revents) continue;
    clients.emplace_back(Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
}

void FakeHeddled::handle(Socket& socket, const Packet& packet) {
  switch (packet.type) {
    case MessageType::kHello: {
      note(packet.as<Hello>().resume_session ? "resume" : "hello");
      Welcome welcome;
      welcome.session = 7;
      welcome.secret = 8;
      welcome.grants_at_malloc = options_.grants_at_malloc;
      welcome.budget_bytes = options_.budget;
      welcome.device_count = options_.devices;
      welcome.side_device_count = options_.side_devices;
      welcome.window_count = 1;
      welcome.windows[0] = kWindow;
      for (uint32_t i = 0; i < options_.devices; ++i) {
        welcome.devices[i] = model();
        welcome.devices[i].kind = options_.kind;
        welcome.devices[i].pci_bus = i + 1;
      }
      (void)socket.send(welcome);
      return;
    }
    case MessageType::kOpenDevice:
      return open(socket, packet.as<OpenDevice>());
    case MessageType::kDeclareModule:
      return note(words("module", packet.as<DeclareModule>().module));
    case MessageType::kDeclareSegment:
      return declare(socket, packet.as<DeclareSegment>());
    case MessageType::kBeginTask:
      return begin(packet.as<BeginTask>());
    case MessageType::kBeginApart:
      (void)socket.send(ApartAnswer{*request_of(packet), begin_apart(packet.as<BeginApart>()) ? 1u : 0u});
      return;
    case MessageType::kComputeNeed:
      return note(words("need blocks", packet.as<ComputeNeed>().blocks));
    case MessageType::kWorkWaits:
      return note(words("work waits", packet.as<WorkWaits>().virtual_device));
    case MessageType::kMemoryInfo:
      (void)socket.send(MemoryAnswer{*request_of(packet), options_.budget, 0});
      return;
    default:
      return note("unexpected");
  }
}

void FakeHeddled::open(Socket& socket, const OpenDevice& open) {
  Device& device = *devices_.at(open.virtual_device);
  auto [fd, memory] = std::move(*RingMemory::create(options_.ring));
  device.ring = std::make_unique<RingMemory>(std::move(memory));
  device.memory = std::move(fd);
  const int descriptor = device.memory.get();
  (void)socket.send(DeviceOpened{open.request}, {&descriptor, 1});
}

void FakeHeddled::declare(Socket& socket, const DeclareSegment& segment) {
  if (segment.release) return note(words("release", segment.number));
  if (segment.kind == SegmentKind::kHost) {
    note(words("host", segment.number));
    const Fd memory = std::move(*create_memfd("host", Bytes{segment.bytes}));
    const int descriptor = memory.get();
    for (auto& device : devices_) {
      const std::lock_guard lock(device->mutex);
      device->mapped.emplace(segment.number, segment);
    }
    (void)socket.send(SegmentAnswer{segment.request}, {&descriptor, 1});
    return;
  }
  const char* const kind = segment.kind == SegmentKind::kDriver ? "driver" : "segment";
  note(words(kind, segment.number) + words("", segment.bytes));
  Device& device = *devices_.at(segment.virtual_device);
  bool known = std::any_of(device.waiting.begin(), device.waiting.end(),
                           [&](const DeclareSegment& other) { return other.number == segment.number; });
  {
    const std::lock_guard lock(device.mutex);
    known = known || device.mapped.contains(segment.number);
  }
  if (!known && device.serial != 0) map(device, segment);
  if (!known && device.serial == 0) device.waiting.push_back(segment);
  if (segment.request != 0) unanswered_[socket.get()].push_back(segment.request);
  answer_held(socket);
}

void FakeHeddled::answer_held(Socket& socket) {
  if (memory_held_) return;
  for (const uint64_t request : std::exchange(unanswered_[socket.get()], {})) (void)socket.send(SegmentAnswer{request});
}

void FakeHeddled::map(Device& device, const DeclareSegment& segment) {
  const std::lock_guard lock(device.mutex);
  place_memory(segment.address, segment.bytes);
  device.mapped.emplace(segment.number, segment);
  ring_bell(device.ring->header().to_worker);
}

void FakeHeddled::begin(const BeginTask& task) {
  note(words("begin", task.serial) + words(" blocks", task.need.blocks));
  Device& device = *devices_.at(task.need.virtual_device);
  if (device.serial == task.serial) return;
  device.serial = task.serial;
  RingHeader& header = device.ring->header();
  header.binding = static_cast<uint32_t>(Binding::kWaiting);
  for (const DeclareSegment& segment : device.waiting) map(device, segment);
  device.waiting.clear();
  if (device.worker.joinable()) device.worker.join();
  device.worker = std::thread([this, &device] { work(device); });
}

bool FakeHeddled::begin_apart(const BeginApart& tasks) {
  const uint32_t first = tasks.first.need.virtual_device, second = tasks.second.need.virtual_device;
  note(words(grants_apart_ ? "apart" : "alone", first) + words("", second));
  if (grants_apart_) {
    if (tasks.first.serial != 0) begin(tasks.first);
    begin(tasks.second);
    return true;
  }
  devices_.at(second)->waiting.clear();
  if (tasks.first.serial != 0) devices_.at(first)->waiting.clear();
  return false;
}

void FakeHeddled::work(Device& device) {
  RingHeader& header = device.ring->header();
  while (held_ && !stopping_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  header.task_serial = device.serial.load();
  header.binding = static_cast<uint32_t>(Binding::kBound);
  ring_bell(header.to_client);
  auto reader = *RingReader::attach(*device.ring);
  Record record;
  while (!stopping_) {
    const uint32_t seen = read_bell(header.to_worker);
    if (!*reader.next(record)) {
      commit_if_wanted(device);
      const uint64_t asked = header.reclaims;
      const bool over = asked != device.reclaims && reclaim_idle(device);
      if (over) {
        device.serial = 0;
        header.binding = static_cast<uint32_t>(Binding::kUnbound);
        ring_bell(header.to_client);
      }
      device.reclaims = asked;
      if (over) return;
      wait_bell(header.to_worker, seen, std::chrono::milliseconds(20));
      continue;
    }
    if (const uint32_t code = fault_.exchange(0); code != 0) {
      const std::lock_guard lock(mutex_);
      set_text(header.fault_text, fault_text_);
      header.fault = code;
    }
    if (header.fault == 0) execute(device, record);
    if (record.header.type == RecordType::kFree) {
      const std::lock_guard lock(device.mutex);
      device.mapped.erase(record.header.a);
      note(words("free", record.header.a));
    }
    publish(device, record);
    if (record.header.type != RecordType::kTaskEnd) continue;
    note(words("end", record.header.a));
    device.serial = 0;
    header.binding = static_cast<uint32_t>(Binding::kUnbound);
    ring_bell(header.to_client);
    return;
  }
}

namespace {

char* pointer_to(const RingMemory& ring, const CopyEnd& end) {
  return end.place == Place::kBulk ? ring.bulk().data() + end.address : reinterpret_cast<char*>(end.address);
}

void copy(const RingMemory& ring, const CopyRecord& record) {
  const auto pitch = [&](const CopyEnd& end) { return end.place == Place::kBulk ? record.width : end.pitch; };
  for (uint64_t z = 0; z < record.depth; ++z) {
    for (uint64_t y = 0; y < record.height; ++y) {
      std::memmove(pointer_to(ring, record.to) + z * record.to.slice + y * pitch(record.to),
                   pointer_to(ring, record.from) + z * record.from.slice + y * pitch(record.from), record.width);
    }
  }
}

void fill(const RingMemory& ring, const FillRecord& record) {
  for (uint64_t z = 0; z < record.depth; ++z) {
    for (uint64_t y = 0; y < record.height; ++y)
      std::memset(pointer_to(ring, record.to) + z * record.to.slice + y * record.to.pitch,
                  static_cast<int>(record.value), record.width);
  }
}

}  // namespace

void FakeHeddled::execute(Device& device, const Record& record) {
  RingHeader& header = device.ring->header();
  switch (record.header.type) {
    case RecordType::kNeed:
      for (;;) {
        const uint32_t seen = read_bell(header.to_worker);
        {
          const std::lock_guard lock(device.mutex);
          if (device.mapped.contains(record.header.a) || stopping_) return;
        }
        wait_bell(header.to_worker, seen, std::chrono::milliseconds(20));
      }
    case RecordType::kCopy:
      return copy(*device.ring, record.as<CopyRecord>());
    case RecordType::kFill:
      return fill(*device.ring, record.as<FillRecord>());
    case RecordType::kLaunch: {
      Kernel kernel;
      {
        const std::lock_guard lock(mutex_);
        kernel = kernel_;
      }
      const auto launch = record.as<LaunchRecord>();
      if (kernel) kernel(launch, reinterpret_cast<const char*>(record.trailing<LaunchRecord>().data()));
      return;
    }
    case RecordType::kTexture: {
      const TextureSlot& slot = device.ring->textures()[record.header.a];
      note(words("texture", slot.handle) + words(" at", slot.texture.address));
      return;
    }
    case RecordType::kLimit:
      return note(words("limit", record.header.a) + words(" is", record.header.b));
    case RecordType::kTextureGone:
      return note(words("texture gone", device.ring->textures()[record.header.a].handle));
    case RecordType::kEventRecord: {
      EventSlot& event = device.ring->events()[record.header.a];
      event.time_ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
      event.completed = record.header.sequence;
      return;
    }
    case RecordType::kHostCall: {
      StreamSlot& stream = device.ring->streams()[record.header.stream];
      stream.host_reached = record.header.sequence;
      ring_bell(header.to_client);
      for (;;) {
        const uint32_t seen = read_bell(header.to_worker);
        if (stream.host_done >= record.header.sequence || stopping_) return;
        wait_bell(header.to_worker, seen, std::chrono::milliseconds(20));
      }
    }
    default:
      return;
  }
}

int FakeHeddled::device_memory(const int* address) {
  const std::lock_guard lock(mutex_);
  return *address;
}

void FakeHeddled::publish(Device& device, const Record& record) {
  const std::lock_guard lock(mutex_);
  RingHeader& header = device.ring->header();
  device.ring->streams()[record.header.stream].completed = record.header.sequence;
  header.issued = header.completed = record.header.sequence;
  device.shown_end = record.end;
  const RecordType type = record.header.type;
  const bool repeats = type == RecordType::kLaunch || type == RecordType::kCopy || type == RecordType::kFill;
  header.holds_back = options_.shows_ahead;
  if (!options_.shows_ahead || !repeats) {
    header.committed = record.header.sequence;
    header.record_head.store(record.end, std::memory_order_release);
  }
  ring_bell(header.to_client);
}

void FakeHeddled::commit_if_wanted(Device& device) {
  const std::lock_guard lock(mutex_);
  RingHeader& header = device.ring->header();
  const uint64_t wanted = header.wanted, done = header.completed;
  if (wanted <= header.committed || wanted > done) return;
  header.committed = done;
  header.record_head.store(device.shown_end, std::memory_order_release);
  ring_bell(header.to_client);
}

}  // namespace heddle::client::testing
