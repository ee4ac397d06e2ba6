#include "client/device/promises.h"

namespace heddle::client {
namespace {

// The only writer: readers see one value or the next.
void count(std::atomic<uint64_t>& total, uint64_t more) {
  total.store(total.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

void Promises::open(uint64_t task) {
  if (open_.try_emplace(task).second) count(totals_.tasks, 1);
}

void Promises::add(uint64_t task, uint64_t bytes, uint64_t address) {
  by_size_[bytes].push_back({task, address});
  open_[task].declared += bytes;
  count(totals_.declared, bytes);
}

std::optional<uint64_t> Promises::take(uint64_t bytes) {
  const auto found = by_size_.find(bytes);
  if (found == by_size_.end()) return std::nullopt;
  const Promise promise = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) by_size_.erase(found);
  open_[promise.task].taken += bytes;
  count(totals_.used, bytes);
  return promise.address;
}

void Promises::allocated_without(uint64_t bytes) {
  if (open_.empty()) return;
  open_.rbegin()->second.undeclared += bytes;
  count(totals_.beside, bytes);
}

std::vector<uint64_t> Promises::take_back(uint64_t task) {
  const auto closed = close(task);
  if (!closed) return {};
  count(totals_.tasks, ~uint64_t{0});  // one less
  count(totals_.declared, ~closed->account.declared + 1);
  return closed->left;
}

std::vector<uint64_t> Promises::untaken(uint64_t task) {
  std::vector<uint64_t> left;
  for (auto size = by_size_.begin(); size != by_size_.end();) {
    std::erase_if(size->second, [&](const Promise& promise) {
      if (promise.task != task) return false;
      left.push_back(promise.address);
      return true;
    });
    size = size->second.empty() ? by_size_.erase(size) : std::next(size);
  }
  return left;
}

std::optional<Promises::Closed> Promises::close(uint64_t task) {
  const auto found = open_.find(task);
  if (found == open_.end()) return std::nullopt;
  Closed closed{found->second, untaken(task)};
  open_.erase(found);
  return closed;
}

}  // namespace heddle::client
