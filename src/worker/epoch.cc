#include "worker/epoch.h"

#include "core/clock.h"

namespace heddle::worker {
namespace {

TimePoint time_now() {
  return MonotonicClock().now();
}

std::vector<protocol::UndoLog::Part> parts_of(const Precautions& needed) {
  std::vector<protocol::UndoLog::Part> parts;
  for (const Save& save : needed.saves)
    parts.push_back({save.segment, save.bytes.begin, save.bytes.end - save.bytes.begin});
  return parts;
}

uint64_t bytes_of(const Precautions& needed) {
  uint64_t bytes = 0;
  for (const Save& save : needed.saves) bytes += save.bytes.end - save.bytes.begin;
  return bytes;
}

}  // namespace

Epoch::Epoch(protocol::RingMemory& ring, Modules& modules, OwnCopies& copies, Commit& commit, Progress& progress,
             Variables& variables, LongWork& long_work, SaveBudget budget, protocol::UndoLog undo,
             protocol::BufferTable buffers)
    : ring_(ring),
      modules_(modules),
      copies_(copies),
      commit_(commit),
      progress_(progress),
      variables_(variables),
      long_work_(long_work),
      budget_(budget),
      undo_(std::move(undo)),
      memory_(buffers) {
  ring_.header().holds_back.store(keeps(), std::memory_order_relaxed);
  for (const auto piece : undo_.pieces()) copies_.pin_later(piece);
}

void Epoch::mapped(uint64_t number, uint64_t address, uint64_t bytes, bool host) {
  if (keeps()) (void)memory_.segment_mapped(number, address, bytes, host);
}

void Epoch::note_variables() {
  for (; placed_ < modules_.loaded_count(); ++placed_) {
    const Modules::Loaded& loaded = modules_.loaded_at(placed_);
    for (size_t i = 0; i < loaded.variables.size(); ++i)
      (void)memory_.variable_placed(loaded.id, loaded.indices[i], loaded.variables[i]);
  }
}

// ---- Before a record ----

// Where long work alone is protected.
Epoch::Choice Epoch::choose(const protocol::Record& record) {
  is_long_ = long_work_.is_long(record);
  if (state_ == State::kOpen && !progress_.go_on_holding()) state_ = State::kClosed;
  if (is_long_) return Choice::kProtect;
  if (state_ == State::kOpen) {
    const bool beside = progress_.completed() < long_;
    const Drained drained = beside ? Drained::kLate : drain(time_now(), kLongPatience);
    record_waits_ = drained == Drained::kNotYet;
    if (record_waits_) return Choice::kWait;
    if (drained == Drained::kLate) return Choice::kProtect;
  }
  pass(record.header.sequence);
  return Choice::kPass;
}

// Where no epoch is open.
void Epoch::pass(uint64_t sequence) {
  record_waits_ = false;
  draining_.reset();
  passed_ = sequence;
  commit_.affects(sequence);
}

bool Epoch::costs_too_much(const Precautions& needed) {
  if (!long_work_.chooses() || !is_long_) return false;
  const std::optional<Duration> copies = copies_.estimate(bytes_of(needed));
  return copies && !long_work_.is_worth(*copies);
}

// What saving costs the budget; nothing where that is not bounded.
SaveBudget::Save Epoch::price_of(const Precautions& needed) {
  if (!budget_.is_bounded() || needed.saves.empty()) return {};
  const uint64_t bytes = bytes_of(needed);
  return {bytes, needed.saves.size() + 1, undo_.used().value, copies_.estimate(bytes)};  // and a stamp
}

// For long work while no epoch is open: it can have one when everything before it is done. False: not yet. It stays
// without where waiting is of no use, or holds others up for long.
bool Epoch::clear_the_way(const protocol::Record& record, const RecordEffects& effects) {
  const uint64_t sequence = record.header.sequence;
  const uint64_t before = std::max(passed_, state_ == State::kExposed ? last_ : 0);
  const bool use = host_calls_ == 0 && may_be_repeated(effects);
  const bool patient = state_ == State::kClosed || !others_follow_();
  const Drained done = use && patient ? await(before, time_now(), kLongPatience) : Drained::kLate;
  if (done == Drained::kNotYet) return false;
  if (done == Drained::kYes) state_ = State::kClosed;
  if (done == Drained::kLate) {
    if (use && patient && !others_follow_()) return false;
    expose(sequence);
  }
  return true;
}

// On the epoch's only stream the record would wait there just as well.
bool Epoch::had_better_wait(uint32_t stream, const Precautions& needed) {
  if (!long_work_.chooses() || only_one_ != stream || last_ == began_at_) return false;
  const bool waits = is_long_ ? long_work_.takes(kOld) || costs_too_much(needed) : !needed.saves.empty();
  return waits && !others_follow_();
}

Checked<Epoch::Step> Epoch::before_known(const protocol::Record& record, const RecordEffects& effects) {
  const uint64_t sequence = record.header.sequence;
  if (long_work_.chooses() && state_ != State::kOpen) {
    memory_.committed();
    if (costs_too_much(memory_.before(effects, record.header.stream))) {
      pass(sequence);
      return Step::kGo;
    }
    record_waits_ = !clear_the_way(record, effects);
    if (record_waits_) return Step::kWait;
    if (state_ == State::kExposed) return Step::kGo;
  }
  record_waits_ = !begin(sequence, record.header.stream);
  if (record_waits_) return Step::kWait;
  if (state_ == State::kOpen && may_be_repeated(effects)) {
    const uint32_t stream = record.header.stream;
    const Precautions needed = memory_.before(effects, stream);
    if (had_better_wait(stream, needed)) {
      record_waits_ = true;
      if (drain(time_now(), kLongPatience) == Drained::kYes) protocol::ring_bell(ring_.header().to_worker);
      return Step::kWait;
    }
    const SaveBudget::Save price = price_of(needed);
    if (!budget_.affords(price, now_)) {
      expose(sequence);
      return Step::kGo;
    }
    if (undo_.has_room(needed.saves.size(), bytes_of(needed))) {
      budget_.spend(price);
      const auto saved = save(stream, sequence, needed);
      if (!saved) return tl::unexpected(saved.error());
      memory_.handed_over(effects, needed, stream, *saved);
      components_.touches(stream, effects, needed.saves, now_);
      if (last_ == began_at_) only_one_ = stream;
      if (only_one_ != stream) only_one_.reset();
      last_ = sequence;
      if (is_long_) long_ = sequence;
      return Step::kGo;
    }
    // Less needs to be saved in an epoch of its own, and there is more room.
    record_waits_ = last_ > began_at_ && drain(time_now(), kLongPatience) != Drained::kLate;
    if (record_waits_) return Step::kWait;
  }
  expose(sequence);
  return Step::kGo;
}

// What its kernels keep of modules' addresses is found there again, or nowhere (Variables::restore).
bool Epoch::may_be_repeated(const RecordEffects& effects) const {
  if (variables_.obstructed()) return false;
  return !effects.unmovable || (*effects.unmovable == Unmovable::kModuleAddress && variables_.stay());
}

// For a record with effects: in an open epoch, or exposed. False: not yet.
bool Epoch::begin(uint64_t sequence, uint32_t stream) {
  const TimePoint now = now_ = time_now();
  const TimePoint since = state_ == State::kOpen ? components_.since(stream, began_, now) : began_;
  if (state_ == State::kOpen && is_wanted() && !commit_apart(components_.of(progress_.pending(wanted()).stream))) {
    const Drained drained = drain(now, kPatience);
    if (drained == Drained::kNotYet) return false;
    if (drained == Drained::kLate) expose(last_);
  } else if (state_ != State::kClosed && host_calls_ == 0 && now - since > old_) {
    const Drained drained = drain(now, kLongPatience);
    if (drained == Drained::kNotYet) return false;
    if (drained == Drained::kLate) old_ *= 2;
  }
  if (state_ == State::kExposed && progress_.completed() == sequence - 1) state_ = State::kClosed;
  if (state_ == State::kOpen && !progress_.go_on_holding()) state_ = State::kClosed;
  if (state_ == State::kClosed && host_calls_ == 0) open(sequence);
  return true;
}

// Nothing with effects is under way. If anything else is, nobody knows which streams it has to do with.
void Epoch::open(uint64_t sequence) {
  if (variables_.to_be_saved()) variables_.save_if_due(progress_.completed(), time_now());
  memory_.committed();
  undo_.clear();
  enter(State::kOpen);
  components_.clear();
  began_at_ = last_ = progress_.completed();
  if (began_at_ + 1 != sequence) components_.join_all();
  progress_.hold();
}

void Epoch::enter(State state) {
  state_ = state;
  began_ = time_now();
  old_ = kOld;
  draining_.reset();
}

// From here on, and until everything up to `sequence` is done, nothing can be run again.
void Epoch::expose(uint64_t sequence) {
  variables_.note_uncommitted();
  commit_.affects(sequence);
  last_ = std::max(last_, sequence);
  if (state_ == State::kExposed) return;
  if (state_ == State::kOpen) progress_.show_uncommitted();
  undo_.clear();
  enter(State::kExposed);
}

Checked<device::Tag> Epoch::save(uint32_t stream, uint64_t sequence, const Precautions& needed) {
  for (const device::Tag awaited : needed.await) {
    if (auto waits = copies_.wait_on_stream(stream, awaited); !waits)
      return tl::unexpected(refusal_of("wait for a save", waits.error()));
  }
  if (needed.saves.empty()) return 0;
  for (const auto& [part, to] : undo_.add(sequence, stream, parts_of(needed))) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the device's
    const auto* from = reinterpret_cast<const void*>(memory_.address_of(part.segment) + part.offset);
    const auto copied = copies_.copy(stream, device::CopyDirection::kToHost, from, to.data(), to.size());
    if (!copied) return tl::unexpected(refusal_of("save", copied.error()));
  }
  const protocol::UndoLog::Stamp stamp = undo_.stamp();
  const auto stamped = copies_.copy(stream, device::CopyDirection::kOnHost, stamp.from, stamp.to, sizeof(uint64_t));
  if (!stamped) return tl::unexpected(refusal_of("stamp of a save", stamped.error()));
  return *stamped;
}

// ---- Ends ----

// Asks for the commit of what was handed over; behind it nothing is, until begin(). True: nothing is held back.
bool Epoch::close() {
  if (state_ == State::kExposed && progress_.completed() >= last_) state_ = State::kClosed;
  if (state_ != State::kOpen) return state_ == State::kClosed;
  if (variables_.to_be_saved()) {
    // Ask to be woken, then look: it may be done in between.
    progress_.wake_issuer_once_at(last_);
    if (progress_.completed() < last_) return false;
    variables_.commit(last_, time_now());
  }
  progress_.commit_at(last_);
  if (commit_.holding()) return false;
  state_ = State::kClosed;
  return true;
}

Epoch::Drained Epoch::drain(TimePoint now, Duration patience) {
  progress_.wake_issuer_once_at(last_);
  if (close()) {
    draining_.reset();
    return Drained::kYes;
  }
  return wait(now, patience);
}

// Until everything up to `sequence` is done. Asks to be woken, then looks.
Epoch::Drained Epoch::await(uint64_t sequence, TimePoint now, Duration patience) {
  progress_.wake_issuer_once_at(sequence);
  if (progress_.completed() >= sequence) {
    draining_.reset();
    return Drained::kYes;
  }
  return wait(now, patience);
}

Epoch::Drained Epoch::wait(TimePoint now, Duration patience) {
  if (!draining_) draining_ = now;
  patience_ = patience;
  if (now - *draining_ < patience) return Drained::kNotYet;
  draining_.reset();
  return Drained::kLate;
}

bool Epoch::settle() {
  record_waits_ = false;
  if (state_ != State::kOpen) return true;
  const Drained drained = drain(time_now(), kLongPatience);
  if (drained == Drained::kLate) expose(last_);
  return !(record_waits_ = drained == Drained::kNotYet);
}

// Something is done and held back, and somebody waits for it: for its stream or event, or for the log up to there.
bool Epoch::is_wanted() const {
  const uint64_t wanted = this->wanted();
  if (wanted <= progress_.committed() || !progress_.done(wanted)) return false;
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
  draining_.reset();
  return true;
}

void Epoch::rest() {
  if (state_ != State::kOpen || close()) return;
  if (components_.several()) (void)commit_apart(components_.all());
  // Ask to be woken, then look.
  progress_.wake_issuer_when_done(wanted());
  if (is_wanted()) {
    if (drain(time_now(), kPatience) == Drained::kLate) expose(last_);
  } else if (!record_waits_) {
    draining_.reset();
  }
}

// Who waits for what is committed already waits for nothing.
void Epoch::taken(const protocol::RecordHeader& record) {
  taken_ = record.sequence;
  if (state_ != State::kOpen || !keeps_order(record.type) || progress_.is_cut(record)) return;
  const uint32_t flags = ring_.streams()[record.stream].flags.load(std::memory_order_relaxed);
  components_.taken(record.stream, record.stream == 0 || (flags & protocol::kStreamNonBlocking) == 0, now_);
  if (record.type == protocol::RecordType::kEventRecord)
    components_.records(record.stream, static_cast<uint32_t>(record.a));
  if (record.type == protocol::RecordType::kEventWait && record.b > progress_.committed())
    components_.waits(record.stream, progress_.pending(record.b).stream);
}

std::optional<Duration> Epoch::patience() const {
  if (!draining_) return std::nullopt;
  return std::max(*draining_ + patience_ - time_now(), Duration::zero());
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

// ---- In another worker ----

Checked<void> Epoch::restore(const protocol::LogState& log) {
  note_variables();
  components_.clear();
  again_until_ = log.handed_over;
  const std::vector<protocol::UndoEntry> left = undo_.left(log.completed, log.streams);
  for (const protocol::UndoEntry& entry : left) {
    if (auto put = put_back(entry); !put) return put;
  }
  if (!copies_.wait())
    return refused(kCudaLaunchFailure, "its worker ended, and the next one could not write its memory");
  if (left.empty()) return {};
  began_at_ = last_ = log.completed;
  enter(State::kOpen);
  progress_.hold();
  return {};
}

// Its segment may have been given back in the epoch.
Checked<void> Epoch::put_back(const protocol::UndoEntry& entry) {
  const std::span<std::byte> saved = undo_.bytes_of(entry);
  const ByteRanges::Range bytes{entry.offset, entry.offset + entry.bytes};
  const std::optional<uint64_t> address = memory_.find(entry.segment, bytes);
  if (!address) return {};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the device's
  const auto copied =
      copies_.copy(0, device::CopyDirection::kToDevice, saved.data(), reinterpret_cast<void*>(*address), saved.size());
  if (!copied) return tl::unexpected(refusal_of("write back", copied.error()));
  memory_.already_saved({entry.segment, bytes});
  components_.touches(entry.stream, {}, {{entry.segment, bytes}}, time_now());
  return {};
}

}  // namespace heddle::worker
