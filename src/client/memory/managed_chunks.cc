#include "client/memory/managed_chunks.h"

namespace heddle::client {
namespace {

bool is_held(ChunkHolder holder) {
  return holder == ChunkHolder::kBoth || holder == ChunkHolder::kHost;
}

void append(std::vector<ChunkRange>& runs, size_t chunk) {
  if (!runs.empty() && runs.back().end() == chunk) {
    ++runs.back().count;
  } else {
    runs.push_back({chunk, 1});
  }
}

}  // namespace

bool ManagedChunks::host_may(size_t chunk, ManagedAccess access) const {
  return holders_[chunk] == ChunkHolder::kHost ||
         (access == ManagedAccess::kRead && holders_[chunk] == ChunkHolder::kBoth);
}

void ManagedChunks::set(size_t chunk, ChunkHolder holder) {
  beside_device_ += holder != ChunkHolder::kDevice;
  beside_device_ -= holders_[chunk] != ChunkHolder::kDevice;
  holders_[chunk] = holder;
}

std::vector<ChunkRange> ManagedChunks::runs_of(ChunkRange range, ChunkHolder holder) const {
  std::vector<ChunkRange> runs;
  if (beside_device_ == 0 && holder != ChunkHolder::kDevice) return runs;
  for (size_t chunk = range.first; chunk < range.end(); ++chunk) {
    if (holders_[chunk] == holder) append(runs, chunk);
  }
  return runs;
}

std::vector<ChunkRange> ManagedChunks::to_fetch(ChunkRange range) const {
  return runs_of(range, ChunkHolder::kDevice);
}

std::vector<ChunkRange> ManagedChunks::to_push(ChunkRange range) const {
  return runs_of(range, ChunkHolder::kHost);
}

std::vector<ChunkRange> ManagedChunks::host_uses(ChunkRange range, ManagedAccess access) {
  std::vector<ChunkRange> changed;
  for (size_t chunk = range.first; chunk < range.end(); ++chunk) {
    if (host_may(chunk, access)) continue;
    set(chunk, access == ManagedAccess::kWrite ? ChunkHolder::kHost : ChunkHolder::kBoth);
    append(changed, chunk);
  }
  return changed;
}

std::vector<ChunkRange> ManagedChunks::device_uses(ChunkRange range, ManagedAccess access) {
  std::vector<ChunkRange> changed;
  if (beside_device_ == 0) return changed;
  for (size_t chunk = range.first; chunk < range.end(); ++chunk) {
    const ChunkHolder before = holders_[chunk];
    const bool stays_readable = access == ManagedAccess::kRead && is_held(before);
    set(chunk, stays_readable ? ChunkHolder::kBoth : ChunkHolder::kDevice);
    const bool less = is_held(before) && before != holders_[chunk];
    if (less) append(changed, chunk);
  }
  return changed;
}

}  // namespace heddle::client
