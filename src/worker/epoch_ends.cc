// The part of Epoch that ends it: what is held back is committed, or shown, or known to be beyond repetition.

#include "core/clock.h"
#include "worker/epoch.h"

namespace heddle::worker {

// Asks for the commit of what was handed over; behind it nothing is, until begin(). True: nothing is held back.
bool Epoch::close() {
  if (state_ == State::kExposed && progress_.completed() >= last_) state_ = State::kClosed;
  if (state_ != State::kOpen) return state_ == State::kClosed;
  if (variables_.to_be_saved()) {
    // Ask to be woken, then look: it may be done in between.
    progress_.wake_issuer_once_at(last_);
    if (progress_.completed() < last_) return false;
    const TimePoint begun = MonotonicClock().now();
    variables_.commit(last_, begun, guard_.on());
    const TimePoint saved = MonotonicClock().now();
    if (guard_.on() && !budget_.covers(saved - begun, saved)) guard_.leave_soon();
  }
  progress_.commit_at(last_);
  if (commit_.holding()) return false;
  state_ = State::kClosed;
  return true;
}

bool Epoch::may_be_shown(TimePoint now) {
  if (state_ != State::kOpen || long_work_.chooses() || !only_one_ || !span_.goes_on(now)) return false;
  const uint64_t wanted = this->wanted();
  const bool for_its_commit = wanted > progress_.committed() && wanted <= progress_.shown();
  return !for_its_commit;
}

// The same, but that what can be shown ahead is not committed, and the epoch goes on.
bool Epoch::show(TimePoint now) {
  if (may_be_shown(now)) {
    if (progress_.show_at(last_)) return progress_.shown() >= last_;
    span_.forgo();  // text was printed
  }
  return close();
}

Epoch::Drained Epoch::drain(TimePoint now, Duration patience, End end) {
  progress_.wake_issuer_once_at(last_);
  if (end == End::kShow ? show(now) : close()) {
    draining_.end();
    return Drained::kYes;
  }
  return draining_.goes_on(now, patience) ? Drained::kNotYet : Drained::kLate;
}

// Until everything up to `sequence` is done. Asks to be woken, then looks.
Epoch::Drained Epoch::await(uint64_t sequence, TimePoint now, Duration patience) {
  progress_.wake_issuer_once_at(sequence);
  if (progress_.completed() >= sequence) {
    draining_.end();
    return Drained::kYes;
  }
  return draining_.goes_on(now, patience) ? Drained::kNotYet : Drained::kLate;
}

bool Epoch::settle() {
  record_waits_ = false;
  if (state_ != State::kOpen) return true;
  const Drained drained = drain(MonotonicClock().now(), guard_.on() ? Guard::kPatience : kLongPatience);
  if (drained == Drained::kLate) expose(last_);
  return !(record_waits_ = drained == Drained::kNotYet);
}

// Something is done and held back, and somebody waits for it: for its stream or event, or for the log up to there. Who
// was shown it waits for its commit.
bool Epoch::is_wanted() const {
  const uint64_t wanted = this->wanted();
  if (wanted <= progress_.committed()) return false;
  if (wanted <= progress_.shown()) return true;
  if (!progress_.done(wanted)) return false;
  return !progress_.is_cut(wanted) || progress_.completed() >= wanted;
}

// Those of which everything is done; false where none of them can be committed without the rest just now.
bool Epoch::commit_apart(const std::vector<Components::Streams>& components) {
  if (components.empty() || taken_ < again_until_) return false;
  uint64_t wanted = this->wanted();
  const Components::Streams done = progress_.commit_done(components);
  if (done.empty()) return false;
  // Who waits for the stream has what he wants; who waits for the log says it again.
  if (progress_.is_cut(wanted) && ring_.header().wanted.compare_exchange_strong(wanted, 0)) commit_.ring_client();
  memory_.committed(done, components_.committed(done));
  undo_.forget_last([this](uint32_t stream, uint64_t sequence) {
    return sequence <= progress_.committed() || progress_.is_cut(stream, sequence);
  });
  draining_.end();
  return true;
}

void Epoch::rest(bool commits) {
  const TimePoint now = MonotonicClock().now();
  if (state_ != State::kOpen || (commits ? close() : show(now))) return;
  if (components_.several()) (void)commit_apart(components_.all());
  // Ask to be woken, then look. On one stream all is done with what was handed over last, and shown without us.
  const bool is_last = only_one_ && wanted() >= last_;
  progress_.wake_issuer_when_done(is_last ? 0 : wanted());
  if (is_wanted()) {
    if (drain(now, kPatience, End::kShow) == Drained::kLate) expose(last_);
  } else if (!record_waits_) {
    draining_.end();
  }
}

std::optional<Duration> Epoch::patience() const {
  const TimePoint now = MonotonicClock().now();
  const auto left = draining_.left(now);
  if (state_ != State::kOpen || !span_.goes_on(now)) return left;
  return std::min(left.value_or(Duration::max()), span_.left(now));
}

void Epoch::fail() {
  if (state_ == State::kOpen) expose(last_);
}

void Epoch::end_task() {
  if (!keeps()) return;
  undo_.clear();
  for (const auto piece : undo_.pieces()) copies_.unpin(piece);
  undo_.trim();
}

}  // namespace heddle::worker
