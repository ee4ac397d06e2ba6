// The part of Issuer that goes by the ring's lease: what may be handed to the device, when the lease goes back, and
// what heddled is told of the ring's work meanwhile. None of it runs while nobody asks for leases.

#include <algorithm>

#include "core/clock.h"
#include "worker/issuer.h"

namespace heddle::worker {
namespace {

// A program that waits for a kernel and launches the next one has not stopped working in between: so much silence is
// no end of a burst. It bounds the messages, too: there are fewer while nobody waits to hear them.
constexpr Duration kSilence = std::chrono::microseconds(250), kSilenceAlone = std::chrono::milliseconds(2);
// Between looks for the end of work that was handed over before leases counted: nobody is woken for it.
constexpr Duration kUncountedLook = std::chrono::milliseconds(1);
// Records that a lease may go without a look.
constexpr uint32_t kUnattended = 256;

TimePoint now() {
  return MonotonicClock().now();
}

// What an event stands behind that is record `sequence` and has not been reached: its stream may have gone on, to
// `held`.
std::vector<HeldBy> held_before(uint64_t sequence, const std::vector<HeldBy>& held,
                                const std::vector<HostCall>& calls) {
  std::vector<HeldBy> before;
  for (HeldBy by : held) {
    by.call = 0;
    for (const HostCall& call : calls) {
      if (call.stream == by.stream && call.sequence < sequence) by.call = std::max(by.call, call.sequence);
    }
    if (by.call != 0) before.push_back(by);
  }
  return before;
}

// After which heddled is told that there is no work; none: it need not know.
std::optional<Duration> silence_awaited(const WorkerLease& lease) {
  if (lease.wanted()) return kSilence;
  return lease.ends() ? std::optional(kSilenceAlone) : std::nullopt;
}

}  // namespace

bool is_blocking(const SessionParts& parts, uint32_t stream) {
  const uint32_t flags = parts.ring.streams()[stream].flags.load(std::memory_order_relaxed);
  return stream == 0 || (flags & protocol::kStreamNonBlocking) == 0;
}

// From now on, if not yet: what was handed over until now was not counted.
void Issuer::count_leases() {
  if (std::exchange(counts_, true)) return;
  uncounted_ = last_work_ = entered_;
  held_.clear();
  for (const HostCall& call : host_calls_) held_.hold(call.stream, is_blocking(parts_, call.stream), call.sequence);
}

// While host calls are open: which of them record_ stands behind. Records that the device never sees stand behind none.
void Issuer::follow_host_calls() {
  const protocol::RecordType type = record_.header.type;
  if (!keeps_order(type)) return;
  const uint32_t stream = record_.header.stream;
  held_.follow(stream, is_blocking(parts_, stream));
  if (type == protocol::RecordType::kEventWait && !parts_.progress.done(record_.header.b))
    held_.wait(stream, is_blocking(parts_, stream),
               held_before(record_.header.b, held_.of(parts_.progress.pending(record_.header.b).stream), host_calls_));
}

void Issuer::say_backlog() {
  idle_since_.reset();
  if (std::exchange(backlog_, true)) return;
  parts_.commit.tell(protocol::Backlog{task_serial_});
}

// For record_, which needs the device. Where it must wait for a host call's return, no lease helps it.
bool Issuer::may_issue(const WorkKind& work) {
  const uint32_t stream = record_.header.stream;
  const InFlight::Room room{stream, lease_.window(), lease_.wanted(), held_.holds(stream)};
  awaits_call_ = room.held && !has_room(work, room);
  if (awaits_call_) return false;
  say_backlog();
  const TimePoint at = lease_.undisturbed() ? TimePoint{} : now();
  if (lease_.whole_bursts() && !parts_.in_flight.any()) lease_.begin_burst(at, parts_.usage.longest_burst());
  if (!lease_.begins(at)) return false;
  parts_.usage.seen(record_.header.sequence);
  return room.held || has_room(work, room);
}

bool Issuer::has_room(const WorkKind& work, InFlight::Room room) {
  if (parts_.in_flight.admits(work, room)) return true;
  if (room.wanted && !room.held) return false;
  room.others_follow =
      room.held ? look_ahead_.anything_else_follows(record_, reader_) : look_ahead_.others_follow(record_, reader_);
  return room.others_follow && parts_.in_flight.admits(work, room);
}

Checked<Issuer::Step> Issuer::execute_leased() {
  count_leases();
  promotion_.none();
  // Where heddled wants the task to come to a cut soon, it may promote what lies on the host.
  if (!segments_.on_host().empty() && lease_.wanted()) {
    const auto over_bus = [this] { return execution_.time_on_host(record_, segments_.on_host()); };
    if (promotion_.holds(record_.header.sequence, now(), over_bus)) return Step::kWait;
  }
  const WorkKind work = work_of(record_);
  const bool uncounted = goes_uncounted(work);
  if (!uncounted && !may_issue(work)) return Step::kWait;
  auto step = uncounted ? execution_.execute(record_) : execute_counted(work);
  const uint64_t sequence = record_.header.sequence;
  const bool handed_over = step && *step == Step::kTaken && parts_.progress.pending(sequence).on_device;
  if (handed_over) last_work_ = sequence;
  if (handed_over && uncounted) uncounted_ = sequence;
  if (!handed_over && !uncounted) parts_.in_flight.take_back(sequence);
  return step;
}

// Only where nothing is to be looked after: nobody waits for the device, and no stream stands behind a host call.
bool Issuer::goes_uncounted(const WorkKind& work) {
  const uint64_t sequence = record_.header.sequence;
  if (!lease_.undisturbed() || lease_.whole_bursts() || !host_calls_.empty()) return false;
  if (sequence - parts_.progress.completed() > ShortWork::kMostInFlight || !short_work_.take(work)) return false;
  say_backlog();
  parts_.usage.seen(sequence);
  return lease_.begins(TimePoint{});
}

Checked<Issuer::Step> Issuer::execute_counted(const WorkKind& work) {
  const uint32_t stream = record_.header.stream;
  const Duration window = lease_.window();
  short_work_.counted(work,
                      parts_.in_flight.hand_over(record_.header.sequence, stream, work, window, held_.of(stream)));
  auto step = execution_.execute(record_);
  if (step && *step == Step::kTaken && parts_.in_flight.take_fence_due(window, lease_.wanted())) parts_.context.fence();
  return step;
}

// Work that was handed over behind the call begins with the release. After a fault everything ends at once.
bool Issuer::may_release(const HostCall& call) {
  if (!lease_.exclusive() || parts_.fault.raised()) return true;
  count_leases();
  if (last_work_ < call.sequence) return true;
  say_backlog();
  return lease_.begins(now());
}

// Of what was not counted, nothing that came behind a host call that has not returned is waited for.
bool Issuer::uncounted_is_done() const {
  uint64_t first_held = UINT64_MAX;
  for (const HostCall& call : host_calls_) first_held = std::min(first_held, call.sequence);
  return parts_.progress.completed() >= std::min(uncounted_, first_held - 1);
}

// A record, or the return of a host call, waits for the device.
bool Issuer::waits_for_device() const {
  if (parts_.fault.raised()) return false;
  const bool waits = awaits_call_ || promotion_.holds();
  if (have_record_ && !suspending_ && needs_device(record_.header.type) && !waits) return true;
  return std::any_of(host_calls_.begin(), host_calls_.end(),
                     [this](const HostCall& call) { return last_work_ > call.sequence && has_returned(parts_, call); });
}

// Nothing can be taken from the ring just now.
void Issuer::attend_lease() {
  count_leases();
  if (lease_.undisturbed()) return;
  if (lease_.fresh() && waits_for_device()) return;  // it was lent a moment ago: the bell has rung for it
  const TimePoint at = now();
  const bool holds = lease_.holds(at);  // takes note that its time is over: patience() does not wait for that again
  // What stands behind a host call that has not returned does not compute.
  if (!parts_.in_flight.drained() || !uncounted_is_done()) {
    idle_since_.reset();
    return;
  }
  if (!holds) parts_.usage.wait_for_lease();
  look_whether_drained(at);  // first: what heddled knows when the lease is back, it decides by
  if (const auto generation = lease_.due(at)) {
    lease_.returned();
    parts_.commit.tell(protocol::LeaseReturned{*generation});
  }
}

// The ring is never empty, and what it holds may not need the device: markers without end must not keep the lease.
void Issuer::attend_lease_meanwhile() {
  if (!lease_.exclusive() || ++unattended_ < kUnattended) return;
  unattended_ = 0;
  if (lease_.undisturbed()) return;
  parts_.context.flush();
  attend_lease();
}

void Issuer::look_whether_drained(TimePoint at) {
  if (!backlog_ || !gate_.serving() || waits_for_device()) return;
  if (!idle_since_) idle_since_ = at;
  const auto silence = silence_awaited(lease_);
  if (!silence || at - *idle_since_ < *silence) return;
  backlog_ = false;
  idle_since_.reset();
  parts_.commit.tell(protocol::Drained{task_serial_});
}

// For how long the issuer may sleep before it must look at its lease.
Duration Issuer::patience() const {
  if (lease_.undisturbed()) return nap_;
  const TimePoint at = now();
  Duration longest = nap_;
  if (const auto remaining = lease_.remaining(at)) longest = std::min(longest, *remaining);
  if (promotion_.holds()) longest = std::min(longest, promotion_.until() - at);
  const auto silence = silence_awaited(lease_);
  if (idle_since_ && silence) longest = std::min(longest, *idle_since_ + *silence - at);
  if (!uncounted_is_done()) longest = std::min(longest, kUncountedLook);
  return std::max(longest, Duration::zero());
}

}  // namespace heddle::worker
