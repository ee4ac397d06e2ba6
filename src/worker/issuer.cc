#include "worker/issuer.h"

#include <algorithm>

#include "core/clock.h"
#include "core/log.h"

namespace heddle::worker {
namespace {

using protocol::RecordType;

// A tenant can write to the bell and so lose our wake-up: then we look for ourselves this much later.
constexpr Duration kLongestSleep = std::chrono::seconds(1);
// The first sleeps are shorter: a program that has called nothing for two of them gives back what it has freed. One
// that frees and allocates in a loop is back long before.
constexpr Duration kFirstSleep = std::chrono::milliseconds(25);

// What comes before it is committed when it is taken: it cannot be run again, or what it does is seen.
bool acts_when_committed(RecordType type) {
  return type == RecordType::kFree || type == RecordType::kTaskEnd || type == RecordType::kHostCall ||
         type == RecordType::kLimit || type == RecordType::kReset;
}

}  // namespace

Issuer::Issuer(const SessionParts& parts, Modules& modules, const Binding& binding, protocol::RingReader reader,
               WorkerLease lease)
    : parts_(parts),
      modules_(modules),
      task_serial_(binding.task_serial),
      reader_(reader),
      execution_(parts, modules, binding.model, binding.window),
      segments_(parts.context, parts.epoch),
      idle_(parts.ring.header()),
      reset_(binding.goes_on && binding.goes_on->task == binding.task_serial && binding.goes_on->reset),
      goes_on_(binding.goes_on),
      entered_(parts.progress.completed()),
      nap_(kFirstSleep),
      lease_(std::move(lease)) {
  parts_.epoch.look_ahead_by([this] { return look_ahead_.others_follow(record_, reader_); });
}

void Issuer::post(protocol::Packet packet) {
  inbox_.put(std::move(packet));
  protocol::ring_bell(parts_.ring.header().to_worker);
}

void Issuer::stop() {
  stopping_.store(true, std::memory_order_release);
  protocol::ring_bell(parts_.ring.header().to_worker);
}

void Issuer::run() {
  const auto restored = execution_.restore();
  if (!restored) parts_.fault.raise(restored.error());
  protocol::Bell& bell = parts_.ring.header().to_worker;
  if (lease_.exclusive()) count_leases();
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint32_t seen = protocol::read_bell(bell);
    attend();
    if (parts_.fault.held_back()) {
      protocol::wait_bell(bell, seen, kLongestSleep);
      continue;
    }
    if (!suspending_ && next() && take()) {
      nap_ = kFirstSleep;
      attend_lease_meanwhile();
      continue;
    }
    flush();
    parts_.usage.end_burst_at(parts_.progress.completed());
    if (lease_.exclusive()) {
      attend_lease();
    } else {
      counts_ = false;
    }
    parts_.epoch.rest(!deferred_.empty());
    if (suspending_) {
      leave_if_done();
      if (!suspending_) continue;
    } else {
      save_variables();
    }
    rest(bell, seen);
  }
}

// Nothing more is in the ring. Behind work that is under way the device is asked for the end of the rest later, but at
// once where somebody waits for it.
void Issuer::flush() {
  parts_.reports.look();
  if (wants_fence()) {
    parts_.context.fence();
    fenced_ = entered_;
  } else if (parts_.context.flush()) {
    fenced_ = entered_;
  }
}

bool Issuer::wants_fence() const {
  const uint64_t wanted = parts_.ring.header().wanted.load(std::memory_order_relaxed);
  return wanted > fenced_ && wanted <= entered_;
}

// Between two launches of a program that waits for each it looks. Without processors to spare the program would wait
// for this thread's looking, too.
bool Issuer::watch(protocol::Bell& bell, uint32_t seen, Duration timeout) {
  if (gate_.serving() && spare_processors().are_there(MonotonicClock().now())) {
    Looker looker(timeout);
    while (looker.goes_on()) {
      if (protocol::read_bell(bell) == seen && !wants_fence()) continue;
      looker.found();
      return true;
    }
  }
  return protocol::wait_bell(bell, seen, timeout);
}

void Issuer::rest(protocol::Bell& bell, uint32_t seen) {
  const Duration undisturbed = lease_.exclusive() ? patience() : nap_;
  const Duration longest =
      std::min({undisturbed, save_in_.value_or(undisturbed), parts_.epoch.patience().value_or(undisturbed)});
  const bool rung = watch(bell, seen, std::min(nap_, longest));
  if (rung || longest < nap_) return;
  const bool again = nap_ > kFirstSleep;
  nap_ = std::min(2 * nap_, kLongestSleep);
  if (again && is_quiet()) (void)reclaim_idle();
}

// ---- Between records ----

void Issuer::attend() {
  for (const protocol::Packet& packet : inbox_.take()) receive(packet);
  if (parts_.fault.held_back()) return;
  if (parts_.fault.raised()) parts_.epoch.fail();
  if (!deferred_.empty()) run_deferred();
  reclaim_if_asked();
  if (!host_calls_.empty()) finish_host_calls();
}

void Issuer::receive(const protocol::Packet& packet) {
  if (packet.type == protocol::MessageType::kMapSegment) return map(packet);
  if (packet.type == protocol::MessageType::kProceed) {
    if (goes_on_) go_on();
    return gate_.memory_ready();
  }
  if (packet.type == protocol::MessageType::kNextTask) return begin_task(packet.as<protocol::NextTask>().task_serial);
  if (packet.type == protocol::MessageType::kSuspend) {
    // Of a task that has ended meanwhile, or was left, heddled has heard.
    suspending_ |= gate_.serving() && packet.as<protocol::Suspend>().serial == task_serial_;
    return;
  }
  if (packet.type == protocol::MessageType::kDeviceFault) {
    const auto fault = packet.as<protocol::DeviceFault>();
    parts_.fault.raise({fault.cuda_error, protocol::get_text(fault.text)});
    return parts_.context.wake();  // what was held back with one is shown
  }
  if (packet.type != protocol::MessageType::kModule || packet.descriptors.empty()) {
    logger("worker")->error("message {} makes no sense to a bound worker", static_cast<unsigned>(packet.type));
    return;
  }
  const auto module = packet.as<protocol::Module>();
  const auto added = modules_.add(module.module, packet.descriptors[0], Bytes{module.bytes});
  if (!added) parts_.fault.raise(refusal_of("module", added.error()));
}

void Issuer::map(const protocol::Packet& packet) {
  const auto segment = packet.as<protocol::MapSegment>();
  if (segment.release) {
    // The program has given it back, but work that was issued before may still use it.
    deferred_.push_back({Deferred::Kind::kReleaseHost, entered_, 0, segment.number});
    return;
  }
  // For a task that has ended: sent before heddled heard of that.
  if (!gate_.serving() && segment.kind != protocol::SegmentKind::kHost) return;
  const auto mapped = packet.descriptors.empty() ? fail(ErrorCode::kProtocol, "segment %lu came without its memory",
                                                        static_cast<unsigned long>(segment.number))
                                                 : segments_.map(segment, packet.descriptors[0]);
  if (!mapped) parts_.fault.raise(refusal_of("memory", mapped.error()));
  if (segment.on_host) modules_.keep_uses();
}

// ---- One record ----

bool Issuer::next() {
  if (have_record_) return true;
  if (!gate_.open()) return false;
  const auto got = reader_.next(record_);
  if (got && *got && parts_.progress.has_slot(record_.header.sequence)) {
    if (!lease_.exclusive() || !needs_device(record_.header.type)) parts_.usage.seen(record_.header.sequence);
    return have_record_ = true;
  }
  if (got && !*got) return false;
  gate_.close();
  parts_.fault.raise({kCudaUnknown, got ? "the ring holds more records than there is space for" : got.error().text});
  return false;
}

// False where the record has to wait. One that is refused fails the session and is done with; so is everything that
// follows, so that the program comes to look at the fault instead of waiting for ever.
bool Issuer::take() {
  auto step = issue();
  if (!step) {
    parts_.fault.raise(step.error());
    if (parts_.fault.held_back()) return false;
    step = execution_.here(record_);
  }
  if (*step == Step::kWait) return false;
  parts_.epoch.taken(record_.header);
  entered_ = record_.header.sequence;
  have_record_ = false;
  return true;
}

Checked<Issuer::Step> Issuer::issue() {
  const protocol::RecordHeader& header = record_.header;
  if (acts_when_committed(header.type) && !parts_.epoch.settle()) return Step::kWait;
  // These take effect after a fault too: memory goes back, the task ends.
  if (header.type == RecordType::kFree) return defer(Deferred::Kind::kFree);
  if (header.type == RecordType::kTaskEnd) return end_task();
  if (parts_.fault.raised() || parts_.progress.is_cut(header)) return execution_.here(record_);
  if (header.type == RecordType::kNeed) return segments_.mapped(header.a) ? execution_.here(record_) : Step::kWait;
  if (counts_ && !host_calls_.empty()) follow_host_calls();
  if (header.type == RecordType::kHostCall) return host_call();
  if (header.type == RecordType::kReset) {
    reset_ = true;
    parts_.commit.reset();
    return execution_.here(record_);
  }
  const bool leased = needs_device(header.type) && lease_.exclusive();
  parts_.reports.leased(leased);
  if (leased) return execute_leased();
  return execution_.execute(record_);
}

Checked<Issuer::Step> Issuer::host_call() {
  auto step = execution_.hold(record_);
  if (!step) return step;
  const HostCall& call = host_calls_.emplace_back(HostCall{record_.header.stream, record_.header.sequence});
  parts_.epoch.host_calls(host_calls_.size());
  if (counts_) held_.hold(call.stream, is_blocking(parts_, call.stream), call.sequence);
  return step;
}

Issuer::Step Issuer::defer(Deferred::Kind kind) {
  const uint64_t sequence = record_.header.sequence;
  parts_.progress.enter(record_);
  deferred_.push_back({kind, sequence - 1, sequence, record_.header.a});
  return Step::kTaken;
}

Issuer::Step Issuer::end_task() {
  const uint64_t serial = record_.header.a;
  if (serial != task_serial_)
    parts_.fault.raise(
        {kCudaUnknown, stringf("the program ends task %lu, this is task %lu", static_cast<unsigned long>(serial),
                               static_cast<unsigned long>(task_serial_))});
  gate_.close();
  return defer(Deferred::Kind::kTaskEnd);
}

}  // namespace heddle::worker
