#include "worker/held_streams.h"

#include <algorithm>

namespace heddle::worker {

void HeldStreams::hold(uint32_t stream, bool blocking, uint64_t call) {
  join(stream, blocking, {{stream, call}});
}

void HeldStreams::release(const HeldBy& returned) {
  for (auto& [index, stream] : streams_) release(stream.held, returned);
  std::erase_if(streams_, [](const auto& entry) { return entry.second.held.empty(); });
}

void HeldStreams::release(std::vector<HeldBy>& held, const HeldBy& returned) {
  std::erase_if(held, [&](const HeldBy& by) { return by.stream == returned.stream && by.call <= returned.call; });
}

void HeldStreams::follow(uint32_t stream, bool blocking) {
  if (!blocking) return;
  if (stream != 0) return join(stream, blocking, of(0));
  std::vector<HeldBy> all;
  for (const auto& [index, other] : streams_) {
    if (other.blocking) all.insert(all.end(), other.held.begin(), other.held.end());
  }
  join(0, blocking, all);
}

std::vector<HeldBy> HeldStreams::of(uint32_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? std::vector<HeldBy>{} : found->second.held;
}

void HeldStreams::join(uint32_t stream, bool blocking, const std::vector<HeldBy>& more) {
  if (more.empty()) return;
  Stream& joined = streams_[stream];
  joined.blocking = blocking;
  for (const HeldBy& by : more) {
    const auto same = [&](const HeldBy& known) { return known.stream == by.stream; };
    const auto found = std::find_if(joined.held.begin(), joined.held.end(), same);
    if (found == joined.held.end())
      joined.held.push_back(by);
    else
      found->call = std::max(found->call, by.call);
  }
}

}  // namespace heddle::worker
