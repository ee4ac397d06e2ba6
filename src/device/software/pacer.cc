#include "device/software/pacer.h"

#include <algorithm>

namespace heddle::software {
namespace {

// A turn of a time-sliced device, before the slowdown: what NVIDIA's driver gives compute contexts by default.
constexpr Duration kTimeSlice = std::chrono::milliseconds(2);
// How soon the death of another client is noticed by one that waits.
constexpr Duration kSweepInterval = std::chrono::milliseconds(100);
// With nothing to wait for, the pacer sleeps until it is rung, or so long.
constexpr Duration kIdle = std::chrono::seconds(10);

}  // namespace

Pacer::Pacer(const DeviceModel& model, Board shared, uint32_t sms)
    : shared_(std::move(shared)), sms_(sms), blocks_(Pace(model)), copies_(Pace(model)) {
  paces_kernels_ = Pace(model).kernels();
  slice_ = Duration(std::max<int64_t>(
      1, static_cast<int64_t>(static_cast<double>(kTimeSlice.count()) * std::max(model.slowdown, 0.0))));
}

Result<std::unique_ptr<Pacer>> Pacer::open(const DeviceModel& model, const Fd& board, uint32_t sms) {
  Pace pace(model);
  if (!pace.kernels() && !pace.copies()) return nullptr;
  auto shared = Board::open(model, board);
  if (!shared) return tl::unexpected(shared.error());
  std::unique_ptr<Pacer> pacer(new Pacer(model, std::move(*shared), sms));
  if (model.sharing != Sharing::kTimeSliced) return pacer;
  auto memory = create_memfd("heddle-own-board", Board::bytes(model));
  if (!memory) return tl::unexpected(memory.error());
  auto own = Board::open(model, *memory);
  if (!own) return tl::unexpected(own.error());
  pacer->own_.emplace(std::move(*own));
  return pacer;
}

Status Pacer::attach() {
  HEDDLE_TRY(shared_.attach(sms_));
  return own_ ? own_->attach(sms_) : Status{};
}

void Pacer::detach() {
  if (own_) own_->detach();
  shared_.detach();
}

Result<Pacer::Step> Pacer::step(TimePoint now) {
  auto lock = shared_.lock();
  if (!lock) return tl::unexpected(lock.error());
  if (now - last_sweep_ >= kSweepInterval) {
    Slots(*lock).sweep(now);
    last_sweep_ = now;
  }
  Step step;
  copies_.step(*lock, now, step.copies);
  if (own_) {
    HEDDLE_TRY(step_time_sliced(*lock, now, step));
    return step;
  }
  Slots slots(*lock);
  blocks_.step(slots, nullptr, now, step.blocks);
  plan(now, slots.waiting(), std::nullopt);
  return step;
}

Status Pacer::step_time_sliced(BoardLock& shared, TimePoint now, Step& step) {
  Turns turns(shared, slice_);
  turns.rotate(now);
  if (auto since = blocks_.wanted_since(now)) turns.want(*since, now);
  auto own = own_->lock();
  if (!own) return tl::unexpected(own.error());
  Slots slots(*own);
  blocks_.step(slots, &turns, now, step.blocks);
  bool wanted = blocks_.wanted_since(now).has_value();
  if (!wanted) turns.give_up(blocks_.last_end(), now);
  plan(now, wanted && !turns.mine(), wanted ? turns.next_rotation() : std::nullopt);
  return {};
}

void Pacer::plan(TimePoint now, bool waiting, std::optional<TimePoint> rotation) {
  next_ = now + (waiting ? kSweepInterval : kIdle);
  for (auto due : {blocks_.next(), copies_.next(), rotation}) {
    if (due) next_ = std::min(next_, *due);
  }
}

}  // namespace heddle::software
