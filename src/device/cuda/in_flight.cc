#include "device/cuda/in_flight.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "core/clock.h"
#include "core/cuda_error.h"

namespace heddle::cuda {
namespace {

constexpr uint64_t kMostUnfenced = 64;
constexpr size_t kMostSuspects = 4;
// An operation that nobody waits for gets a fence of its own after so long.
constexpr Duration kUnfencedAge = std::chrono::microseconds(100);

TimePoint now() {
  return MonotonicClock().now();
}

}  // namespace

InFlight::InFlight(const Driver& driver, device::PrintSink print)
    : driver_(driver), staging_(driver), capture_(std::move(print)), clock_(driver) {}

Status InFlight::begin() {
  CUstream& stream = streams_.legacy().handle;
  HEDDLE_TRY(driver_.check(driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
                           "cuStreamCreateWithPriority"));
  return clock_.start(stream);
}

InFlight::~InFlight() {
  for (const auto& stream : streams_.all()) {
    for (const Fence& fence : stream->fences) clock_.give_back(fence.event);
    if (stream->handle) driver_.cuStreamDestroy(stream->handle);
  }
}

void InFlight::abandon() {
  for (const auto& stream : streams_.all()) {
    stream->handle = nullptr;
    stream->fences.clear();
    for (Operation& operation : stream->pending) (void)operation.staged.release();
  }
  staging_.abandon();
  clock_.abandon();
}

// ---- Handed over ----

Operation InFlight::begin_operation(device::Tag tag) {
  Operation operation;
  operation.tag = tag;
  operation.sequence = ++last_sequence_;
  operation.issued = last_activity_ = now();
  return operation;
}

Status InFlight::append(Stream& stream, Operation operation, CUresult result, const char* what, bool urgent) {
  if (result != CUDA_SUCCESS && !is_sticky(result)) {
    if (operation.staged) (void)operation.staged.release();  // half of it may be on its way
    return driver_.check(result, what);
  }
  stream.tail = operation.sequence;
  operation.computes = operation.computes && result == CUDA_SUCCESS;
  stream.refused = stream.refused || operation.problem;
  stream.pending.push_back(std::move(operation));
  ++stream.unfenced;
  ++in_flight_;
  if (result == CUDA_SUCCESS && (urgent || stream.unfenced >= kMostUnfenced)) result = fence(stream, urgent);
  if (result != CUDA_SUCCESS) fault(result, {});
  return {};
}

// Not where an end means more than that the device is there: text that was printed is to be had, a host call follows,
// or an operation never reached the device. What stands behind that one is told as failed.
bool InFlight::can_report(const Stream& stream) const {
  if (!reports_ || stream.pending.empty() || prints() || stream.refused) return false;
  const device::Tag last = stream.pending.back().tag;
  return (last & device::kUnreportedTag) == 0 && !(stream.held && stream.hold == last);
}

CUresult InFlight::report(const Stream& stream) {
  return driver_.cuStreamWriteValue64(stream.handle, words_.first + stream.index * words_.stride,
                                      stream.pending.back().tag, 0);
}

// First the report: that is what a program waits for. The event tells the time.
CUresult InFlight::fence(Stream& stream, bool urgent) {
  const bool reported = urgent && can_report(stream);
  if (reported) {
    if (const CUresult result = report(stream); result != CUDA_SUCCESS) return result;
  }
  const CUevent event = clock_.take();
  if (!event) return CUDA_ERROR_UNKNOWN;
  const CUresult result = driver_.cuEventRecord(event, stream.handle);
  if (result != CUDA_SUCCESS) {
    clock_.give_back(event);
    return is_sticky(result) ? result : CUDA_ERROR_UNKNOWN;
  }
  const bool looked_for = urgent && (!reported || stream.pending.back().mark);
  stream.fences.push_back({event, stream.tail, looked_for});
  stream.unfenced = 0;
  stream.flushed = false;
  if (looked_for) urgent_.fetch_add(1, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

void InFlight::complete_at_once(Stream& stream, Operation operation) {
  complete(stream, operation, operation.issued, operation.issued, fault_, {});
}

void InFlight::will_print() {
  capture_.launched();
  ++printing_;
}

void InFlight::does_not_print() {
  if (printing_ == 0) return;  // a fault has ended the capture
  --printing_;
  capture_.finished(1);
}

// ---- Done ----

void InFlight::complete_found(std::vector<Look>& looks) {
  CUresult failed = CUDA_SUCCESS;
  for (const Look& each : looks) {
    if (each.result != CUDA_SUCCESS && each.result != CUDA_ERROR_NOT_READY) failed = each.result;
  }
  std::erase_if(looks, [](const Look& each) { return each.result != CUDA_SUCCESS; });
  std::sort(looks.begin(), looks.end(), [](const Look& a, const Look& b) {
    return std::tie(a.ended, a.fence.sequence) < std::tie(b.ended, b.fence.sequence);
  });
  for (const Look& each : looks) {
    if (!fault_) pass(*each.stream, each);
  }
  if (failed != CUDA_SUCCESS && !fault_) fault(failed, {});
}

// Everything up to the fence is done. The time since the one before is shared out among its operations.
void InFlight::pass(Stream& stream, const Look& passed) {
  last_activity_ = now();
  const TimePoint done = std::min(passed.ended, last_activity_);
  const Fence fence = stream.fences.front();
  stream.fences.pop_front();
  clock_.give_back(passed.fence.event);
  if (fence.urgent) urgent_.fetch_sub(1, std::memory_order_relaxed);
  const auto behind = std::find_if(stream.pending.begin(), stream.pending.end(),
                                   [&](const Operation& each) { return each.sequence > fence.sequence; });
  const auto count = behind - stream.pending.begin();
  if (count == 0) return;
  const TimePoint began = std::min(done, std::max(stream.last_end, stream.pending.front().issued));
  const Duration share = (done - began) / count;
  uint64_t printed = 0;
  for (ptrdiff_t i = 0; i < count; ++i) {
    if (auto& front = stream.pending.front(); front.problem) {
      const std::string problem = std::move(*front.problem);
      return fault(kCudaIllegalAddress, problem);
    }
    const Operation operation = std::move(stream.pending.front());
    stream.pending.pop_front();
    --in_flight_;
    printed += operation.kernel && operation.kernel->prints;
    if (operation.staged && operation.staged->buffer.data) staging_.give_back(operation.staged->buffer);
    const TimePoint ended = i + 1 == count ? done : began + (i + 1) * share;
    complete(stream, operation, began + i * share, ended, 0, {});
  }
  stream.last_end = done;
  printing_ -= std::min(printed, printing_);
  capture_.finished(printed);
}

void InFlight::fence_old() {
  const TimePoint at = now();
  for (const auto& stream : streams_.all()) {
    if (stream->unfenced == 0 || !stream->fences.empty() || stream->pending.empty()) continue;
    if (!stream->flushed && at - stream->pending.front().issued < kUnfencedAge) continue;
    const CUresult result = fence(*stream, stream->flushed);
    if (result != CUDA_SUCCESS) return fault(result, {});
  }
}

void InFlight::complete(Stream& stream, const Operation& operation, TimePoint started, TimePoint ended,
                        uint32_t cuda_error, std::string text) {
  const bool failed = cuda_error != 0;
  done_.push_back({operation.tag, cuda_error, std::move(text), started, ended, 0, failed && device_lost_});
  stream.last_end = std::max(stream.last_end, ended);
}

size_t InFlight::take(std::span<device::Completion> out) {
  const size_t count = std::min(out.size(), done_.size());
  std::move(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count), out.begin());
  done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

// ---- Failed ----

void InFlight::fault(CUresult result, std::string text) {
  if (text.empty()) text = suspects() + driver_.text(result);
  if (fault_ == 0) device_lost_ = true;
  fault(static_cast<uint32_t>(result), std::move(text));
}

bool InFlight::computing() const {
  const auto& streams = streams_.all();
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
    return std::any_of(stream->pending.begin(), stream->pending.end(),
                       [](const Operation& operation) { return operation.computes; });
  });
}

// The operations of a stream complete in their order; the first one to complete tells what happened.
void InFlight::fault(uint32_t cuda_error, std::string text) {
  if (std::exchange(fault_, cuda_error) != 0) return;
  last_activity_ = now();
  capture_.finished(std::exchange(printing_, 0));
  for (const auto& stream : streams_.all()) fail(*stream, text);
  urgent_.store(0, std::memory_order_relaxed);
  in_flight_ = 0;
}

void InFlight::fail(Stream& stream, std::string& text) {
  const TimePoint at = now();
  streams_.let_go(stream);
  // Their events are not destroyed before the engine: somebody may be asking for them just now.
  for (const Fence& fence : stream.fences) clock_.give_back(fence.event);
  stream.fences.clear();
  for (Operation& operation : stream.pending) {
    (void)operation.staged.release();  // the driver may still write there
    complete(stream, operation, at, at, fault_, std::exchange(text, {}));
  }
  stream.pending.clear();
  for (const Deferred& deferred : stream.deferred)
    complete(stream, deferred.operation, at, at, fault_, std::exchange(text, {}));
  stream.deferred.clear();
}

// The driver does not say which kernel it was: one of those that had not been seen done.
std::string InFlight::suspects() const {
  std::set<std::string> names;
  for (const auto& stream : streams_.all()) {
    for (const Operation& operation : stream->pending) {
      if (operation.kernel) names.insert(operation.kernel->name);
    }
  }
  if (names.empty()) return {};
  std::string text = names.size() == 1 ? "kernel " : "one of the kernels ";
  size_t named = 0;
  for (const std::string& name : names) {
    if (named++ == kMostSuspects) break;
    text += (named == 1 ? "'" : ", '") + name + "'";
  }
  return text + (names.size() > kMostSuspects ? " and others: " : ": ");
}

}  // namespace heddle::cuda
