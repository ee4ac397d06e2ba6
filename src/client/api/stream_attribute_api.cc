// Attributes of streams: hints that are remembered, and the priority.

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "client/api/submit.h"
#include "client/stream/stream_attributes.h"

namespace heddle::client {
namespace {

// cudaLaunchAttributeID, which names streams' attributes too.
constexpr int kSynchronizationPolicy = 3, kPriority = 8, kMemSyncDomainMap = 9;

using Value = cudaLaunchAttributeValue;
using Values = std::map<int, Value>;  // by attribute

// Never destroyed.
struct Attributes {
  std::mutex mutex;
  std::map<std::pair<const VirtualDevice*, uint32_t>, Values> of;
};
Attributes& attributes() {
  static auto* const all = new Attributes;
  return *all;
}

Value default_of(int attribute) {
  Value value{};
  value.pad[0] = attribute == kSynchronizationPolicy ? 1 : 0;  // automatic
  value.pad[1] = attribute == kMemSyncDomainMap ? 1 : 0;       // the remote domain
  return value;
}

Done set_priority(const StreamRef& stream, const Value& value) {
  int priority = 0;
  std::memcpy(&priority, value.pad, sizeof priority);
  priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
  stream.device->streams().set_priority(stream.slot, priority);
  return {};
}

Done set(const StreamRef& stream, int attribute, const Value* value) {
  if (!value) return refuse(cudaErrorInvalidValue);
  if (attribute == kPriority) return stream.slot == 0 ? refuse(cudaErrorInvalidValue) : set_priority(stream, *value);
  if (!is_hint(attribute))
    return refuse(cudaErrorNotSupported, stringf("attribute %d of streams is not supported", attribute));
  Attributes& all = attributes();
  const std::lock_guard lock(all.mutex);
  all.of[{stream.device, stream.slot}][attribute] = *value;
  return {};
}

Done get(const StreamRef& stream, int attribute, Value* value) {
  if (!value) return refuse(cudaErrorInvalidValue);
  if (attribute == kPriority) {
    const int priority = stream.device->streams().state(stream.slot).priority;
    std::memcpy(value->pad, &priority, sizeof priority);
    return {};
  }
  if (!is_hint(attribute))
    return refuse(cudaErrorNotSupported, stringf("attribute %d of streams is not supported", attribute));
  Attributes& all = attributes();
  const std::lock_guard lock(all.mutex);
  const Values& known = all.of[{stream.device, stream.slot}];
  const auto found = known.find(attribute);
  *value = found == known.end() ? default_of(attribute) : found->second;
  return {};
}

Done copy(const StreamRef& to, const StreamRef& from) {
  Attributes& all = attributes();
  const std::lock_guard lock(all.mutex);
  const Values values = all.of[{from.device, from.slot}];
  all.of[{to.device, to.slot}] = values;
  return {};
}

template <class Body>
cudaError_t with_stream(cudaStream_t stream, Body&& body) {
  return answer([&]() -> Done {
    auto resolved = enter_stream(stream);
    if (!resolved) return tl::unexpected(std::move(resolved).error());
    return body(*resolved);
  });
}

}  // namespace

void forget_attributes(const StreamRef& stream) {
  Attributes& all = attributes();
  const std::lock_guard lock(all.mutex);
  all.of.erase({stream.device, stream.slot});
}

HEDDLE_EXPORT cudaError_t cudaStreamSetAttribute(cudaStream_t stream, int attribute, const Value* value) {
  return with_stream(stream, [&](const StreamRef& of) { return set(of, attribute, value); });
}

HEDDLE_EXPORT cudaError_t cudaStreamGetAttribute(cudaStream_t stream, int attribute, Value* value) {
  return with_stream(stream, [&](const StreamRef& of) { return get(of, attribute, value); });
}

HEDDLE_EXPORT cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return with_stream(to, [&](const StreamRef& target) -> Done {
    auto source = enter_stream(from);
    return source ? copy(target, *source) : Done(tl::unexpected(std::move(source).error()));
  });
}

HEDDLE_EXPORT cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, int attribute, const Value* value) {
  const PerThreadDefault scope;
  return cudaStreamSetAttribute(stream, attribute, value);
}

HEDDLE_EXPORT cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, int attribute, Value* value) {
  const PerThreadDefault scope;
  return cudaStreamGetAttribute(stream, attribute, value);
}

HEDDLE_EXPORT cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  const PerThreadDefault scope;
  return cudaStreamCopyAttributes(to, from);
}

}  // namespace heddle::client
