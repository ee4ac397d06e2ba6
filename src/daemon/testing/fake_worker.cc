// A worker without a device, for heddled's tests: it keeps the worker's side of the protocol and of the ring, and does
// nothing else. kFill writes one byte at its address, so that tests see whose memory is mapped where; kTextureGone
// shows the byte at address `a` in the ring's fault word.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "daemon/testing/fake_work.h"
#include "protocol/control_page.h"
#include "protocol/ring_reader.h"
#include "protocol/socket.h"

namespace {

using namespace heddle;
using namespace heddle::protocol;
using namespace heddle::daemon::testing;

volatile sig_atomic_t taken_off = 0;  // by the tests' MPS: what it computed has failed

class FakeWorker {
 public:
  FakeWorker(Socket socket, std::string daemon) : socket_(std::move(socket)), daemon_(std::move(daemon)) {}

  int run() {
    while (!quit_) {
      pollfd ready{socket_.get(), POLLIN, 0};
      ::poll(&ready, 1, 5);
      if (ready.revents != 0) take();
      if (ring_) work();
      if (ring_) attend_lease();
      if (ring_) reclaim();
      if (suspending_) leave();
      if (computing_ && taken_off && !held_back_) fail(810);
    }
    return 0;
  }

 private:
  void take() {
    auto packet = socket_.receive();
    if (!packet) return reconnect();
    switch ((*packet)->type) {
      case MessageType::kStartWorker:
        start_ = (*packet)->as<StartWorker>();
        (void)socket_.send(ready());
        return;
      case MessageType::kBindSession:
        return bind(**packet);
      case MessageType::kNextTask:
        binding_.task_serial = (*packet)->as<NextTask>().task_serial;
        control_.begin_task(binding_.task_serial, false);
        ended_ = backlog_ = false;
        return;
      case MessageType::kSuspend:
        suspending_ = !ended_ && (*packet)->as<Suspend>().serial == binding_.task_serial;
        return;
      case MessageType::kMapSegment:
        return map(**packet);
      case MessageType::kDeviceFault:
        return show_fault((*packet)->as<DeviceFault>().cuda_error);
      case MessageType::kQuit:
        quit_ = true;
        give_room();
        return;
      default:
        return;
    }
  }

  // A real one too ends where the ring is none, and says why.
  void bind(const Packet& packet) {
    binding_ = packet.as<BindSession>();
    auto ring = RingMemory::attach(packet.descriptors.front());
    if (!ring) {
      WorkerFault fault{999};
      set_text(fault.text, "cannot serve the session: " + ring.error().text);
      (void)socket_.send(fault);
      std::exit(1);
    }
    ring_ = std::move(*ring);
    control_ = std::move(*ControlPage::attach(packet.descriptors.at(1)));
    const LogState log = control_.log();
    run_before_ = log.handed_over;
    if (log.task != binding_.task_serial) control_.begin_task(binding_.task_serial, true);
    reader_ = std::make_unique<RingReader>(*RingReader::attach(*ring_, log.record_head, log.completed));
  }

  // What a worker had of the device is free with its end: a test names the file that goes then.
  void give_room() const {
    std::string taken;
    std::getline(std::ifstream(daemon_ + ".room"), taken);
    if (!taken.empty()) ::unlink(taken.c_str());
  }

  WorkerReady ready() const {
    WorkerReady ready;
    ready.device = start_.device;
    ready.worker = start_.worker;
    ready.secret = start_.secret;
    ready.window = start_.windows[0];
    ready.session = binding_.session;
    ready.task_serial = binding_.task_serial;
    ready.virtual_device = binding_.virtual_device;
    return ready;
  }

  void map(const Packet& packet) {
    const auto segment = packet.as<MapSegment>();
    if (segment.release) {
      mapped_.erase(segment.number);
    } else if (!mapped_.contains(segment.number) && !(ended_ && segment.kind == SegmentKind::kDevice)) {
      auto mapping = map_shared(packet.descriptors.front(), Bytes{segment.bytes});
      if (mapping) mapped_.emplace(segment.number, Mapped{segment.address, segment.kind, std::move(*mapping)});
    }
  }

  void reconnect() {
    for (int tries = 0; tries < 200; ++tries) {
      auto socket = connect_to(daemon_);
      if (socket && socket->send(ready())) {
        socket_ = std::move(*socket);
        for (const uint64_t number : freed_) (void)socket_.send(SegmentFreed{number});
        if (held_back_) tell_fault(true, true);
        if (asked_) (void)socket_.send(NeedsApart{binding_.task_serial});
        if (left_) (void)socket_.send(Suspended{binding_.task_serial, 1, 1});
        if (returned_ != 0) (void)socket_.send(LeaseReturned{returned_});
        if (backlog_) (void)socket_.send(Backlog{binding_.task_serial});
        if (ended_ && !left_) (void)socket_.send(TaskEnded{binding_.task_serial, reset_, true});
        return;
      }
      ::usleep(20'000);
    }
    quit_ = true;
  }

  // What computes ends first: here it never does.
  void leave() {
    if (computing_) return;
    suspending_ = false;
    if (late_obstacle_) control_.note_obstacle(Obstacle::kDeviceMalloc);
    if (control_.log().obstacle != Obstacle::kNone) {
      (void)socket_.send(Suspended{binding_.task_serial, 0, 0});
      return;
    }
    ended_ = left_ = true;
    std::erase_if(mapped_, [](const auto& each) { return each.second.kind == SegmentKind::kDevice; });
    if (!mute_) (void)socket_.send(Suspended{binding_.task_serial, 1, 1});
  }

  // Records until one has to wait.
  void work() {
    while (!ended_ && !suspending_ && !held_back_) {
      if (!pending_) {
        const auto next = reader_->next(record_);
        if (!next) std::exit(3);
        if (!*next) return;
      }
      RingHeader& header = ring_->header();
      pending_ = !may_serve(record_.header) || !serve(record_.header);
      if (pending_) return;
      if (record_.header.type == RecordType::kTaskEnd) control_.note_end(record_.header.sequence, true);
      control_.note_cut({record_.header.sequence, record_.end, control_.log().variables_saved});
      header.issued.store(record_.header.sequence);
      header.completed.store(record_.header.sequence);
      header.committed.store(record_.header.sequence);
      header.record_head.store(record_.end);
      ring_bell(header.to_client);
      // Behind the watermarks: the next worker begins where they stand.
      if (record_.header.type == RecordType::kTaskEnd) end_task(record_.header.a);
    }
  }

  void end_task(uint64_t serial) {
    ended_ = true;
    std::erase_if(mapped_, [](const auto& each) { return each.second.kind == SegmentKind::kDevice; });
    Usage usage;
    control_.read(usage);
    usage.launches += 7;
    usage.busy_ns += 7'000;
    control_.publish(usage);
    if (!mute_) (void)socket_.send(TaskEnded{serial, reset_, true});
  }

  void reclaim() {
    RingHeader& header = ring_->header();
    const uint64_t asked = header.reclaims.load();
    if (asked == reclaims_) return;
    reclaims_ = asked;
    const uint64_t serial = binding_.task_serial;
    uint64_t offered = IdleTable::offered_task(serial);
    const bool ends = !ended_ && header.idle.task.compare_exchange_strong(offered, IdleTable::taken_task(serial));
    for (auto& slot : header.idle.segments) {
      uint64_t number = slot.load();
      if (!mapped_.contains(number) || !slot.compare_exchange_strong(number, number | IdleTable::kSegmentTaken))
        continue;
      mapped_.erase(number);
      freed_.insert(number);
      control_.note_freed(number);
      (void)socket_.send(SegmentFreed{number});
    }
    if (ends) control_.note_end(0, true);
    if (ends) end_task(serial);
    (void)socket_.send(SegmentFreed{});
  }

  bool serve(const RecordHeader& header) {
    if (header.type == RecordType::kLimit && header.a == kNotRepeatable && start_.guarded != 0) {
      if (!std::exchange(asked_, true)) (void)socket_.send(NeedsApart{binding_.task_serial});
      return false;
    }
    if (header.type == RecordType::kHostCall) return compute(header);
    if (header.type == RecordType::kNeed) return mapped_.contains(header.a);
    if (header.type == RecordType::kFree) {
      if (!mapped_.contains(header.a)) return false;
      mapped_.erase(header.a);
      freed_.insert(header.a);
      control_.note_freed(header.a);
      if (!mute_) (void)socket_.send(SegmentFreed{header.a});
    }
    if (header.type == RecordType::kReset) (header.a == 1 ? mute_ : reset_) = true;  // 1: says nothing more to heddled
    if (header.type == RecordType::kLimit && header.a == 1) late_obstacle_ = true;
    if (header.type == RecordType::kLimit && header.a == kWritesVariables) {
      control_.note_variables_written(header.sequence);
      const protocol::LogState log = control_.log();
      control_.note_cut({log.completed, log.record_head, header.sequence});
    }
    if (header.type == RecordType::kLimit && header.a == 0) control_.note_obstacle(Obstacle::kDeviceMalloc);
    if (header.type == RecordType::kTextureGone) ring_->header().fault.store(byte_at(header.a));
    if (header.type == RecordType::kFill) return fill(record_.as<FillRecord>());
    if (header.type == RecordType::kLaunch) {  // how tests ask for a crash
      control_.note_affected(header.sequence);
      std::abort();
    }
    if (header.type == RecordType::kPrefetchModule) return fault(header);  // and for a fault
    return true;
  }

  // kRefused is of the worker's own finding, the others are the device's. Where its clients share their faults the
  // worker holds it back, and the record stays under way.
  bool fault(const RecordHeader& header) {
    if (header.a == kRefused) {
      tell_fault(false, false);
      return true;
    }
    if (header.a == kRepeatableOnce && run_before_ >= header.sequence) return true;
    control_.note_handed_over(header.sequence);
    if (header.a == kForGood) control_.note_affected(header.sequence);
    ring_->header().issued.store(header.sequence);
    fail(700);
    return !held_back_;
  }

  void fail(uint32_t cuda_error) {
    held_back_ = start_.shared_faults != 0;
    tell_fault(true, held_back_, cuda_error);
    if (!held_back_) ring_->header().fault.store(cuda_error);
  }

  void tell_fault(bool device_lost, bool held_back, uint32_t cuda_error = 700) {
    WorkerFault fault{cuda_error, device_lost, held_back};
    set_text(fault.text, "asked for");
    (void)socket_.send(fault);
  }

  void show_fault(uint32_t cuda_error) {
    ring_->header().fault.store(cuda_error);
    control_.note_cut({record_.header.sequence, record_.end, control_.log().variables_saved});
    held_back_ = pending_ = false;
    tell_fault(true, false);
    ring_bell(ring_->header().to_client);
  }

  // A kernel that goes on until the program says that its call has returned; with kRepeatable until another worker runs
  // it again.
  bool compute(const RecordHeader& header) {
    if ((header.a == kRepeatable || header.a == kShown) && run_before_ >= header.sequence) return true;
    control_.note_handed_over(header.sequence);
    if (header.a == kShown) {
      control_.note_shown(header.sequence);
      ring_->header().issued.store(header.sequence);
      return false;
    }
    if (header.a == kForGood) control_.note_affected(header.sequence);
    computing_ = header.a == kRepeatable || ring_->streams()[0].host_done.load() < header.sequence;
    if (computing_) ring_->header().issued.store(header.sequence);
    return !computing_;
  }

  // What is for the device waits for the lease, where there are leases; heddled hears of such work, and of its end.
  bool may_serve(const RecordHeader& header) {
    const bool for_device = header.type == RecordType::kHostCall || header.type == RecordType::kFill;
    Lease lease;
    control_.read_lease(lease);
    if (!for_device || computing_ || lease.state == Lease::State::kOpen) return true;
    if (!std::exchange(backlog_, true)) (void)socket_.send(Backlog{binding_.task_serial});
    return lease.state == Lease::State::kHeld;
  }
  void attend_lease() {
    Lease lease;
    control_.read_lease(lease);
    if (ended_ || computing_ || lease.state == Lease::State::kOpen) return;
    if (!pending_ && std::exchange(backlog_, false)) (void)socket_.send(Drained{binding_.task_serial});
    if (lease.state == Lease::State::kWithdrawn && std::exchange(returned_, lease.generation) != lease.generation)
      (void)socket_.send(LeaseReturned{lease.generation});
  }

  bool fill(const FillRecord& fill) {
    for (auto& [number, mapped] : mapped_) {
      if (fill.to.address - mapped.address < mapped.memory.size())
        static_cast<char*>(mapped.memory.data())[fill.to.address - mapped.address] = static_cast<char>(fill.value);
    }
    return true;
  }

  // 0 where nothing is mapped.
  uint32_t byte_at(uint64_t address) const {
    for (const auto& [number, mapped] : mapped_) {
      const uint64_t offset = address - mapped.address;
      if (offset < mapped.memory.size()) return static_cast<const unsigned char*>(mapped.memory.data())[offset];
    }
    return 0;
  }

  struct Mapped {
    uint64_t address;
    SegmentKind kind;
    Mapping memory;
  };

  Socket socket_;
  std::string daemon_;
  StartWorker start_;
  BindSession binding_;
  ControlPage control_;
  std::optional<RingMemory> ring_;
  std::unique_ptr<RingReader> reader_;
  Record record_;
  std::map<uint64_t, Mapped> mapped_;
  std::set<uint64_t> freed_;
  uint64_t reclaims_ = 0, run_before_ = 0;
  uint64_t returned_ = 0;  // the lease's generation that went back last
  bool pending_ = false, ended_ = false, reset_ = false, mute_ = false, quit_ = false, backlog_ = false;
  bool held_back_ = false, late_obstacle_ = false, computing_ = false, suspending_ = false, left_ = false;
  bool asked_ = false;  // to go on apart
};

}  // namespace

int main(int argc, char** argv) {
  std::string daemon;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--daemon") == 0) daemon = argv[i + 1];
  }
  if (std::ifstream fails(daemon + ".fails"); fails) {
    int status = 9;
    fails >> status;
    return status == 0 ? 9 : status;
  }
  if (std::ifstream slow(daemon + ".slow"); slow) {
    useconds_t milliseconds = 0;
    slow >> milliseconds;
    ::usleep(1000 * milliseconds);
  }
  ::signal(SIGURG, [](int) { taken_off = 1; });
  return FakeWorker(Socket(Fd(3)), daemon).run();
}
