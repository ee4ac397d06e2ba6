#include "device/software/engine.h"

#include <algorithm>

#include "core/clock.h"
#include "core/cuda_error.h"
#include "device/software/simt/check/written_memory.h"
#include "device/software/transfer.h"

namespace heddle::software {
namespace {

// Copies up to this size are done on the spot; waking a thread would take longer.
constexpr uint64_t kInlineBytes = 16 * kKiB;

TimePoint now() {
  return MonotonicClock().now();
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(const Setting& setting, const DeviceMemory& memory,
                                              const Libraries& libraries, CompletionQueue& completions,
                                              std::unique_ptr<Pacer> pacer) {
  std::unique_ptr<Engine> engine(new Engine(setting, memory, libraries, completions, std::move(pacer)));
  if (!engine->pacer_) return engine;
  std::promise<Status> attached;
  engine->pace_thread_ = std::thread([&engine = *engine, &attached] { engine.pace_loop(attached); });
  HEDDLE_TRY(attached.get_future().get());
  return engine;
}

Engine::Engine(const Setting& setting, const DeviceMemory& memory, const Libraries& libraries,
               CompletionQueue& completions, std::unique_ptr<Pacer> pacer)
    : setting_(setting),
      memory_(memory),
      libraries_(libraries),
      completions_(completions),
      blocks_(setting.host_threads, setting.model.sms),
      pacer_(std::move(pacer)) {
  for (uint32_t i = 0; i < setting.host_threads; ++i) compute_threads_.emplace_back([this] { compute_loop(); });
  for (CopyLane& lane : copies_) lane.thread = std::thread([this, &lane] { copy_loop(lane); });
}

Engine::~Engine() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (Operation* launch : launches_) std::get<LaunchWork>(launch->work).grid->cancel();
    blocks_changed_.notify_all();
    for (CopyLane& lane : copies_) lane.changed.notify_all();
    if (pace_thread_.joinable()) pacer_->ring();
  }
  for (std::thread& thread : compute_threads_) thread.join();
  for (CopyLane& lane : copies_) lane.thread.join();
  if (pace_thread_.joinable()) pace_thread_.join();
}

Status Engine::create_stream(device::StreamIndex index, bool non_blocking, int priority) {
  std::lock_guard lock(mutex_);
  return streams_.create(index, non_blocking, priority);
}

Status Engine::destroy_stream(device::StreamIndex index) {
  std::lock_guard lock(mutex_);
  HEDDLE_TRY(streams_.destroy(index));
  advance();
  return {};
}

Status Engine::submit(device::StreamIndex index, std::unique_ptr<Operation> operation) {
  std::lock_guard lock(mutex_);
  auto stream = streams_.find(index);
  if (!stream) return tl::unexpected(stream.error());
  operation->enqueued = now();
  streams_.append(**stream, std::move(operation));
  advance();
  return {};
}

Status Engine::release(device::Tag hold) {
  std::lock_guard lock(mutex_);
  if (fault_) return {};  // nothing is held any more
  auto held = holds_.find(hold);
  if (held == holds_.end())
    return fail(ErrorCode::kNotFound, "no stream is held at tag %llu", static_cast<unsigned long long>(hold));
  Operation& operation = *held->second;
  operation.ended = std::max(operation.ended, now());
  holds_.erase(held);
  let_go(operation);
  advance();
  return {};
}

void Engine::advance() {
  do {
    for (auto ready = streams_.take_ready(); !ready.empty(); ready = streams_.take_ready()) {
      for (Operation* operation : ready) start(*operation);
    }
  } while (pace());
}

// Does what the pacer finds due; says whether an operation ended, so that others may start.
bool Engine::pace() {
  if (!pacer_ || pacer_lost_ || (!std::exchange(pace_due_, false) && now() < pacer_->next())) return false;
  auto step = pacer_->step(now());
  if (!step) {
    lose_pacer(step.error());
    return true;
  }
  for (BlockRun& run : step->blocks.placed) blocks_.add_run(std::move(run));
  if (!step->blocks.placed.empty()) blocks_changed_.notify_all();
  for (const auto& ended : step->blocks.ended) finish_if_done(*ended.grid, ended.at);
  for (const auto& ended : step->copies) finish(*ended.operation, ended.at);
  if (pacer_->next() < pace_thread_wakes_) {
    pace_thread_wakes_ = pacer_->next();
    pacer_->ring();
  }
  return !step->blocks.ended.empty() || !step->copies.empty();
}

void Engine::start(Operation& operation) {
  operation.began = operation.ended = operation.ready;
  if (fault_) return finish(operation, operation.ready);
  if (auto* copy = std::get_if<CopyWork>(&operation.work)) {
    bool from_device = copy->direction == device::CopyDirection::kToHost;
    return start_transfer(operation, from_device ? kFromDevice : kTowardsDevice, payload(copy->shape));
  }
  if (auto* fill = std::get_if<FillWork>(&operation.work)) {
    return start_transfer(operation, kFromDevice, payload(fill->shape));
  }
  if (std::holds_alternative<LibraryWork>(operation.work)) return start_transfer(operation, kLibraryCalls, UINT64_MAX);
  if (std::holds_alternative<LaunchWork>(operation.work)) return start_launch(operation);
  if (!std::holds_alternative<HoldWork>(operation.work)) return finish(operation, operation.ready);
  holds_[operation.tag] = &operation;
  report(operation);
}

void Engine::start_transfer(Operation& operation, CopyThread thread, uint64_t bytes) {
  if (pacer_ && pacer_->copies().start(operation)) operation.paced = pace_due_ = true;
  if (bytes > kInlineBytes) {
    copies_[thread].queue.push_back(&operation);
    copies_[thread].changed.notify_one();
    return;
  }
  TimePoint began = now();
  auto problem = perform(operation);
  end_transfer(operation, std::move(problem), began, now());
}

void Engine::end_transfer(Operation& operation, std::optional<Problem> problem, TimePoint began, TimePoint ended) {
  if (problem) fault(operation, problem->cuda_error, std::move(problem->text));
  if (operation.paced) {
    pacer_->copies().moved(operation, ended);
    pace_due_ = true;
    return;
  }
  operation.began = began;
  finish(operation, ended);
}

void Engine::start_launch(Operation& operation) {
  launches_.push_back(&operation);
  auto& grid = std::get<LaunchWork>(operation.work).grid;
  grid->operation = &operation;
  if (pacer_ && pacer_->paces_kernels()) {
    operation.paced = pace_due_ = true;
    pacer_->blocks().launch(grid);
    return;
  }
  operation.began = now();
  blocks_.add_grid(grid, operation.stream->priority);
  blocks_changed_.notify_all();
}

std::optional<Problem> Engine::perform(const Operation& operation) const {
  if (auto* library = std::get_if<LibraryWork>(&operation.work))
    return libraries_.run(library->call(), library->demand, memory_);
  auto text = transfer(operation);
  if (!text) return std::nullopt;
  return Problem{kCudaIllegalAddress, std::move(*text)};
}

std::optional<std::string> Engine::transfer(const Operation& operation) const {
  auto accessible = [this](uint64_t address, uint64_t bytes) { return memory_.accessible(address, bytes); };
  const auto note = [this](const auto& shape) {
    WrittenMemory* written = memory_.written();
    if (!written) return;
    visit_rows(shape.to, shape.width, shape.height, shape.depth,
               [=](uint64_t address, uint64_t bytes) { written->mark(address, bytes); });
  };
  if (auto* copy = std::get_if<CopyWork>(&operation.work)) {
    note(copy->shape);
    return run_copy(copy->shape, copy->direction, accessible);
  }
  const device::FillShape& fill = std::get<FillWork>(operation.work).shape;
  note(fill);
  return run_fill(fill, accessible);
}

void Engine::end_run(BlockRun run, BlockRun::Outcome outcome, TimePoint now) {
  std::shared_ptr<Grid> grid = run.grid;
  uint64_t finished = std::exchange(run.finished, 0);
  bool paced = pacer_ && pacer_->paces_kernels();
  if (!paced) {
    grid->done += finished;
    grid->resident -= finished;
  }
  if (paced && outcome == BlockRun::Outcome::kFinished) {
    pacer_->blocks().computed(run, now);
    pace_due_ = true;
  } else if (outcome == BlockRun::Outcome::kFaulted) {
    fault(*grid->operation, run.fault.cuda_error, run.fault.text);
  } else if (outcome == BlockRun::Outcome::kPreempted && !grid->cancelled()) {
    blocks_.add_run(std::move(run));
    blocks_changed_.notify_one();
  }
  finish_if_done(*grid, now);
}

void Engine::finish_if_done(Grid& grid, TimePoint now) {
  if (!grid.operation || !grid.finished()) return;
  Operation& operation = *std::exchange(grid.operation, nullptr);
  std::erase(launches_, &operation);
  finish(operation, now);
}

void Engine::finish(Operation& operation, TimePoint ended) {
  operation.ended = ended;
  if (fault_ && operation.cuda_error == 0) operation.cuda_error = fault_;
  report(operation);
  let_go(operation);
}

void Engine::report(Operation& operation) {
  completions_.push({operation.tag, operation.cuda_error, std::move(operation.text), operation.began, operation.ended,
                     operation.overrun_ns, operation.cuda_error != 0});
}

// What stands behind it, in its stream or by a wait, may go on.
void Engine::let_go(Operation& operation) {
  streams_.completed(operation);
  streams_.retire(operation);
}

void Engine::fault(Operation& operation, uint32_t cuda_error, std::string text) {
  if (fault_) return;
  operation.cuda_error = cuda_error;
  operation.text = std::move(text);
  fail_everything(cuda_error);
}

void Engine::fail_everything(uint32_t cuda_error) {
  fault_ = cuda_error;
  for (Operation* launch : launches_) std::get<LaunchWork>(launch->work).grid->cancel();
  blocks_.drop_cancelled();
  if (pacer_) {
    pacer_->blocks().cancel();
    pacer_->copies().hurry();
    pace_due_ = true;
  }
  for (Operation* launch : std::vector(launches_)) finish_if_done(*std::get<LaunchWork>(launch->work).grid, now());
  for (auto& [tag, held] : std::exchange(holds_, {})) let_go(*held);
}

// Without the board nothing has a place to run.
void Engine::lose_pacer(const Error& error) {
  pacer_lost_ = true;
  for (Operation* launch : launches_) launch->text = error.text;
  if (!fault_) fail_everything(kCudaUnknown);
  for (Operation* operation : pacer_->copies().abandon()) finish(*operation, now());
}

}  // namespace heddle::software
