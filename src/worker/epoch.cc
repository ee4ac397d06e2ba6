#include "worker/epoch.h"

#include "core/clock.h"

namespace heddle::worker {
namespace {

TimePoint time_now() {
  return MonotonicClock().now();
}

// Of work that waits for no other.
constexpr Duration kAnyTime = std::chrono::hours(24);

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

SaveBudget::Save price_of(const Precautions& needed, const protocol::UndoLog& undo, OwnCopies& copies) {
  if (needed.saves.empty()) return {};
  const uint64_t bytes = bytes_of(needed);
  return {bytes, needed.saves.size() + 1, undo.used().value, copies.estimate(bytes)};  // and a stamp
}

}  // namespace

Epoch::Epoch(protocol::RingMemory& ring, Modules& modules, OwnCopies& copies, Commit& commit, Progress& progress,
             Variables& variables, LongWork& long_work, SaveBudget budget, Guard& guard, protocol::UndoLog undo,
             protocol::BufferTable buffers, bool calls_repeat)
    : ring_(ring),
      modules_(modules),
      copies_(copies),
      commit_(commit),
      progress_(progress),
      variables_(variables),
      long_work_(long_work),
      budget_(budget),
      guard_(guard),
      calls_repeat_(calls_repeat),
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

void Epoch::spare(uint64_t sequence) {
  record_waits_ = false;
  commit_.affects(sequence);
  last_ = std::max(last_, sequence);
  if (state_ == State::kExposed) return;
  enter(State::kExposed);
  spared_ = true;
}

// What is under way can be lost until it is done. Kernels that take long, or wait for the program, are not waited for.
bool Epoch::begins_to_protect(uint64_t sequence) {
  const Drained drained = await(sequence - 1, time_now(), host_calls_ == 0 ? kLongPatience : Duration::zero());
  record_waits_ = drained == Drained::kNotYet;
  if (record_waits_) return false;
  spared_ = false;
  if (drained == Drained::kYes) state_ = State::kClosed;
  return true;
}

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
  draining_.end();
  passed_ = sequence;
  commit_.affects(sequence);
}

bool Epoch::costs_too_much(const Precautions& needed) {
  if (!long_work_.chooses() || !is_long_) return false;
  const std::optional<Duration> copies = copies_.estimate(bytes_of(needed));
  return copies && !long_work_.is_worth(*copies);
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
  record_waits_ = !may_follow(sequence, record.header.stream) || !begin(sequence, record.header.stream);
  if (record_waits_) return Step::kWait;
  if (guard_.leaves() && keeps_back(sequence)) return Step::kWait;
  if (state_ == State::kOpen && may_be_repeated(effects)) {
    const uint32_t stream = record.header.stream;
    const Precautions needed = memory_.before(effects, stream);
    if (had_better_wait(stream, needed)) {
      record_waits_ = true;
      if (drain(time_now(), kLongPatience) == Drained::kYes) protocol::ring_bell(ring_.header().to_worker);
      return Step::kWait;
    }
    const SaveBudget::Save price = price_of(needed, undo_, copies_);
    const bool affords = budget_.affords(price, now_);
    if (affords && undo_.has_room(needed.saves.size(), bytes_of(needed))) {
      budget_.spend(price);
      const auto saved = save(stream, sequence, needed);
      if (!saved) return tl::unexpected(saved.error());
      span_.copies(SaveBudget::time_of(price));
      handed_over(record, effects, needed, *saved);
      return Step::kGo;
    }
    // Less needs to be saved in an epoch of its own, and there is more room.
    record_waits_ = affords && last_ > began_at_ && drain(time_now(), kLongPatience) != Drained::kLate;
    if (record_waits_) return Step::kWait;
  }
  if (keeps_back(sequence)) return Step::kWait;
  expose(sequence);
  return Step::kGo;
}

// Waits for everything before it, for as long as nobody else waits because of that. With work under way that would be
// lost anyhow this one can be lost as well.
bool Epoch::keeps_back(uint64_t sequence) {
  if (!guard_.on() || !keeps() || (state_ == State::kExposed && !spared_)) return false;
  if (variables_.obstructed()) return false;
  const TimePoint now = time_now();
  const Duration patience = others_follow_() ? Guard::kPatience : kAnyTime;
  Drained drained = state_ == State::kOpen ? drain(now, patience) : Drained::kYes;
  if (drained == Drained::kYes) drained = await(sequence - 1, now, patience);
  if (drained == Drained::kYes) guard_.ask();
  if (drained == Drained::kLate) guard_.stay_for_now();
  return record_waits_ = drained != Drained::kLate;
}

void Epoch::handed_over(const protocol::Record& record, const RecordEffects& effects, const Precautions& needed,
                        device::Tag saved) {
  const auto [sequence, stream] = std::pair(record.header.sequence, record.header.stream);
  memory_.handed_over(effects, needed, stream, saved);
  components_.touches(stream, effects, needed.saves, now_);
  const bool calls = record.header.type == protocol::RecordType::kLibraryCall;
  if (!repeats_exactly(effects) || (calls && !calls_repeat_)) span_.forgo();
  if (last_ == began_at_) only_one_ = stream;
  if (only_one_ != stream) only_one_.reset();
  last_ = sequence;
  if (is_long_) long_ = sequence;
  if (sequence <= in_order_until_) {
    in_order_ = sequence;
    in_order_stream_ = stream;
  }
}

// What was shown ahead: between any two records of it the program may have waited, and so ordered what nothing in the
// log orders. So did it before the first record behind it.
bool Epoch::may_follow(uint64_t sequence, uint32_t stream) {
  if (in_order_ == 0 || (sequence <= in_order_until_ && stream == in_order_stream_)) return true;
  if (await(in_order_, time_now(), kAnyTime) != Drained::kYes) return false;
  in_order_ = 0;
  return true;
}

// What its kernels keep of modules' addresses is found there again, or nowhere (Variables::restore).
bool Epoch::may_be_repeated(const RecordEffects& effects) const {
  if (variables_.obstructed()) return false;
  return !effects.unmovable || (*effects.unmovable == Unmovable::kModuleAddress && variables_.stay());
}

// For a record with effects: in an open epoch, or exposed. False: not yet.
bool Epoch::begin(uint64_t sequence, uint32_t stream) {
  const TimePoint now = now_ = time_now();
  if (state_ == State::kOpen && only_one_ != stream && progress_.shown() >= last_) (void)close();
  const TimePoint since = state_ == State::kOpen ? components_.since(stream, began_, now) : began_;
  if (state_ == State::kOpen && is_wanted() && !commit_apart(components_.of(progress_.pending(wanted()).stream))) {
    const Drained drained = drain(now, kPatience, End::kShow);
    if (drained == Drained::kNotYet) return false;
    if (drained == Drained::kLate) expose(last_);
  } else if (state_ != State::kClosed && host_calls_ == 0 && now - since > std::max(old_, span_.length())) {
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
  span_.begin(began_);
  progress_.hold();
}

void Epoch::enter(State state) {
  state_ = state;
  began_ = time_now();
  old_ = kOld;
  draining_.end();
}

// From here on, and until everything up to `sequence` is done, nothing can be run again.
void Epoch::expose(uint64_t sequence) {
  variables_.note_uncommitted();
  commit_.affects(sequence);
  guard_.leave_soon();
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

// ---- In another worker ----

Checked<void> Epoch::restore(const protocol::LogState& log) {
  note_variables();
  components_.clear();
  again_until_ = std::max(log.handed_over, log.shown);
  in_order_until_ = log.shown;
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
