#include "client/promises.h"

namespace heddle::client {

void Promises::add(uint64_t task, uint64_t bytes, uint64_t address) {
  by_size_[bytes].push_back({task, address});
  open_[task].declared += bytes;
}

std::optional<uint64_t> Promises::take(uint64_t bytes) {
  const auto found = by_size_.find(bytes);
  if (found == by_size_.end()) return std::nullopt;
  const Promise promise = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) by_size_.erase(found);
  open_[promise.task].taken += bytes;
  return promise.address;
}

void Promises::allocated_without(uint64_t bytes) {
  if (!open_.empty()) open_.rbegin()->second.undeclared += bytes;
}

std::optional<Promises::Closed> Promises::close(uint64_t task) {
  const auto found = open_.find(task);
  if (found == open_.end()) return std::nullopt;
  Closed closed{found->second, {}};
  open_.erase(found);
  for (auto size = by_size_.begin(); size != by_size_.end();) {
    std::erase_if(size->second, [&](const Promise& promise) {
      if (promise.task != task) return false;
      closed.left.push_back(promise.address);
      return true;
    });
    size = size->second.empty() ? by_size_.erase(size) : std::next(size);
  }
  return closed;
}

}  // namespace heddle::client
