#include "device/software/copy_pacer.h"

#include <algorithm>

#include "device/software/transfer.h"

namespace heddle::software {
namespace {

struct Demand {
  std::optional<uint32_t> engine;
  uint64_t bus_bytes = 0, memory_bytes = 0;
  double flops = 0;
};

Demand demand(const Operation& operation) {
  if (auto* fill = std::get_if<FillWork>(&operation.work)) return {{}, 0, payload(fill->shape)};
  if (auto* call = std::get_if<LibraryWork>(&operation.work)) return {{}, 0, call->demand.bytes, call->demand.flops};
  const auto& copy = std::get<CopyWork>(operation.work);
  uint64_t bytes = payload(copy.shape);
  switch (copy.direction) {
    case device::CopyDirection::kToDevice:
      return {0, bytes, 0};
    case device::CopyDirection::kToHost:
      return {1, bytes, 0};
    case device::CopyDirection::kOnDevice:
      return {{}, 0, 2 * bytes};  // read and written
    case device::CopyDirection::kOnHost:
      break;
  }
  return {};
}

}  // namespace

bool CopyPacer::start(Operation& operation) {
  Demand need = demand(operation);
  if (need.engine && pace_.copies() && need.bus_bytes > 0) {
    engines_[*need.engine].push_back({&operation, need.bus_bytes, operation.ready, {}, 0});
    progress_[&operation] = {};
    return true;
  }
  Duration access = std::max(pace_.memory_access(need.memory_bytes), pace_.arithmetic(need.flops));
  if (access == Duration::zero()) return false;
  operation.began = operation.ready;
  progress_[&operation].timed = operation.ready + access;
  return true;
}

void CopyPacer::moved(Operation& operation, TimePoint at) {
  auto found = progress_.find(&operation);
  if (found != progress_.end()) found->second.moved = at;
}

void CopyPacer::step(BoardLock& lock, TimePoint now, std::vector<Ended>& out) {
  for (uint32_t engine = 0; engine < kCopyEngines; ++engine) step_engine(lock, engine, now);
  std::vector<Ended> ended;
  for (auto& [operation, progress] : progress_) {
    if (!progress.moved || !progress.timed || (*progress.timed > now && !hurry_)) continue;
    TimePoint at = std::max(*progress.timed, *progress.moved);
    operation->overrun_ns = static_cast<uint64_t>((at - *progress.timed).count());
    ended.push_back({operation, hurry_ ? std::min(at, now) : at});
  }
  for (const Ended& end : ended) progress_.erase(end.operation);
  std::sort(ended.begin(), ended.end(), [](const Ended& a, const Ended& b) { return a.at < b.at; });
  out.insert(out.end(), ended.begin(), ended.end());
}

// One copy after the other, one piece after the other; a piece follows the one before it without a gap.
void CopyPacer::step_engine(BoardLock& lock, uint32_t engine, TimePoint now) {
  auto& queue = engines_[engine];
  while (!queue.empty()) {
    Transfer& front = queue.front();
    if (!front.piece && !hurry_) next_piece(lock, engine, front, now);
    if (!hurry_ && front.piece->end > now) return;
    if (front.piece) {
      front.ready = front.piece->end;
      front.left -= front.piece_bytes;
      front.piece.reset();
    }
    if (front.left > 0 && !hurry_) continue;
    Progress& progress = progress_[front.operation];
    progress.timed = hurry_ ? now : front.ready;
    queue.pop_front();
  }
}

void CopyPacer::next_piece(BoardLock& lock, uint32_t engine, Transfer& transfer, TimePoint now) {
  Duration whole = pace_.bus_copy(transfer.left);
  transfer.piece_bytes = transfer.left;
  if (whole > kLongestPiece) {
    double part = static_cast<double>(kLongestPiece.count()) / static_cast<double>(whole.count());
    transfer.piece_bytes = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(transfer.left) * part));
  }
  bool first = transfer.left == payload(std::get<CopyWork>(transfer.operation->work).shape);
  transfer.piece = reserve(lock, engine, transfer.ready, pace_.bus_copy(transfer.piece_bytes), now);
  if (first) transfer.operation->began = transfer.piece->start;
}

std::vector<Operation*> CopyPacer::abandon() {
  std::vector<Operation*> moved;
  for (const auto& [operation, progress] : progress_) {
    operation->paced = false;
    if (progress.moved) moved.push_back(operation);
  }
  progress_.clear();
  for (auto& queue : engines_) queue.clear();
  return moved;
}

std::optional<TimePoint> CopyPacer::next() const {
  std::optional<TimePoint> next;
  for (const auto& queue : engines_) {
    if (!queue.empty() && queue.front().piece) next = earlier(next, queue.front().piece->end);
  }
  for (const auto& [operation, progress] : progress_) {
    if (progress.timed && progress.moved) next = earlier(next, progress.timed);
  }
  return next;
}

}  // namespace heddle::software
