#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace heddle {

// A number that names one object of one kind, so that a session cannot be passed where a segment is meant.
// Plain data: it crosses process boundaries as its value.
template <class Tag>
struct Id {
  uint64_t value = 0;
  friend auto operator<=>(const Id&, const Id&) = default;
};

using UserId = Id<struct UserTag>;        // of the operating system (uid)
using JobId = Id<struct JobTag>;          // a command that `heddle run` started, or a line of a batch
using SessionId = Id<struct SessionTag>;  // one connected process of a job
using TaskId = Id<struct TaskTag>;        // one unit of placement; unique within a node for the life of its vault
using SegmentId = Id<struct SegmentTag>;  // one physical piece of memory; unique likewise
using DeviceId = Id<struct DeviceTag>;    // index of a device in the pool, from 0
using WorkerId = Id<struct WorkerTag>;    // one worker process; never reused within a vault's life

}  // namespace heddle

template <class Tag>
struct std::hash<heddle::Id<Tag>> {
  size_t operator()(const heddle::Id<Tag>& id) const noexcept { return std::hash<uint64_t>{}(id.value); }
};
