#include "core/clock.h"
#include "device/software/engine.h"

// What the engine's threads do. Each holds the lock except while it works or sleeps.
namespace heddle::software {
namespace {

// A turn of a block, in warp instructions: long against the cost of a turn, short against what a person notices.
constexpr uint64_t kTurn = 50'000;

TimePoint now() {
  return MonotonicClock().now();
}

}  // namespace

void Engine::compute_loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    auto run = blocks_.take();
    if (!run) {
      blocks_changed_.wait(lock);
      continue;
    }
    ++run->grid->computing;
    lock.unlock();
    BlockRun::Outcome outcome = run->run(kTurn, setting_.model.sms);
    TimePoint ended = now();
    lock.lock();
    --run->grid->computing;
    end_run(std::move(*run), outcome, ended);
    advance();
  }
}

void Engine::copy_loop(CopyLane& lane) {
  std::unique_lock lock(mutex_);
  for (;;) {
    lane.changed.wait(lock, [&] { return stopping_ || !lane.queue.empty(); });
    if (stopping_) return;
    Operation& operation = *lane.queue.front();
    lane.queue.pop_front();
    bool run = !fault_;
    lock.unlock();
    TimePoint began = now();
    auto problem = run ? perform(operation) : std::nullopt;
    TimePoint ended = now();
    lock.lock();
    end_transfer(operation, std::move(problem), began, ended);
    advance();
  }
}

// The client of the board is this thread: when it ends in whatever way, the others find the client gone.
void Engine::pace_loop(std::promise<Status>& attached) {
  Status status = pacer_->attach();
  attached.set_value(status);
  if (!status) return;
  std::unique_lock lock(mutex_);
  while (!stopping_ && !pacer_lost_) {
    uint32_t seen = pacer_->bell();
    pace_thread_wakes_ = TimePoint{};
    pace_due_ = true;
    advance();
    TimePoint until = pace_thread_wakes_ = pacer_->next();
    lock.unlock();
    pacer_->sleep(seen, until);
    lock.lock();
  }
  pacer_->detach();
}

}  // namespace heddle::software
