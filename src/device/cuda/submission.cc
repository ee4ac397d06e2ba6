#include "device/cuda/submission.h"

#include <algorithm>
#include <tuple>

namespace heddle::cuda {

Status Submission::submit(Stream& stream, Operation operation, Work work) {
  if (in_flight_.faulted()) {
    in_flight_.complete_at_once(stream, std::move(operation));
    return {};
  }
  StreamTable& streams = in_flight_.streams();
  if (!streams.blocked(stream, operation.sequence, work)) return issue(stream, std::move(operation), work);
  if (auto* launch = std::get_if<LaunchWork>(&work)) launch->own();
  streams.defer(stream, {std::move(operation), std::move(work)});
  return {};
}

// What the driver refuses only now has been handed over long ago: it completes, as a fault.
Status Submission::issue_unblocked() {
  Stream* stream = nullptr;
  Deferred deferred;
  while (!in_flight_.faulted() && in_flight_.streams().take_unblocked(stream, deferred)) {
    Operation refused;
    refused.tag = deferred.operation.tag;
    refused.sequence = deferred.operation.sequence;
    refused.issued = deferred.operation.issued;
    const Status status = issue(*stream, std::move(deferred.operation), deferred.work);
    if (!status) HEDDLE_TRY(refuse(*stream, std::move(refused), status.error().text));
  }
  return {};
}

Status Submission::issue(Stream& stream, Operation operation, Work& work) {
  const bool only_a_mark = std::holds_alternative<MarkWork>(work) || std::holds_alternative<HoldWork>(work);
  const CUresult ordered =
      only_a_mark && in_flight_.streams().has_turn(stream) ? CUDA_SUCCESS : keep_legacy_order(stream);
  if (ordered != CUDA_SUCCESS)
    return in_flight_.append(stream, std::move(operation), ordered, "cuStreamWaitEvent", false);
  return std::visit([&](auto& each) { return issue_work(stream, std::move(operation), each); }, work);
}

// It never reaches the device, and is a fault once its turn comes.
Status Submission::refuse(Stream& stream, Operation operation, std::string problem) {
  operation.problem = std::make_unique<std::string>(std::move(problem));
  return in_flight_.append(stream, std::move(operation), CUDA_SUCCESS, "", true);
}

// ---- Launches ----

Status Submission::issue_work(Stream& stream, Operation operation, LaunchWork& work) {
  LoadedKernel& kernel = *work.kernel;
  operation.kernel = &kernel;
  operation.computes = true;
  if (work.config.parameters.size() < kernel.parameter_bytes)
    return heddle::fail(ErrorCode::kInvalidArgument, "launch of '%s': %zu bytes of parameters, it takes %zu",
                        kernel.name.c_str(), work.config.parameters.size(), kernel.parameter_bytes);
  HEDDLE_TRY(textures_.prepare(stream.handle));
  CUresult result = allow_shared(kernel, work.config.dynamic_shared_bytes);
  const bool prints = kernel.prints && result == CUDA_SUCCESS;
  if (prints) in_flight_.will_print();
  if (result == CUDA_SUCCESS) result = launch(stream, work);
  if (result == CUDA_SUCCESS && kernel.writes_surfaces) result = textures_.surfaces_written(stream.handle);
  if (result == CUDA_SUCCESS || is_sticky(result))
    return in_flight_.append(stream, std::move(operation), result, "launch", false);
  if (prints) in_flight_.does_not_print();
  return in_flight_.append(stream, std::move(operation), result, ("launch of '" + kernel.name + "'").c_str(), false);
}

CUresult Submission::launch(const Stream& stream, const LaunchWork& work) {
  const LoadedKernel& kernel = *work.kernel;
  const device::LaunchConfig& config = work.config;
  arguments_.clear();
  for (const size_t offset : kernel.offsets)
    arguments_.push_back(const_cast<std::byte*>(config.parameters.data() + offset));
  const auto& [grid, block] = std::tie(config.grid, config.block);
  if (config.cooperative)
    return driver_.cuLaunchCooperativeKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                             config.dynamic_shared_bytes, stream.handle, arguments_.data());
  return driver_.cuLaunchKernel(kernel.function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                config.dynamic_shared_bytes, stream.handle, arguments_.data(), nullptr);
}

// Kernels may use more dynamic shared memory than by default only where that was said before.
CUresult Submission::allow_shared(LoadedKernel& kernel, uint32_t bytes) {
  if (bytes <= kernel.dynamic_shared) return CUDA_SUCCESS;
  const CUresult result = driver_.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                     static_cast<int>(bytes));
  if (result == CUDA_SUCCESS) kernel.dynamic_shared = bytes;
  return result;
}

// What the library refuses, without the device having failed, is a fault all the same: the program was told that the
// call was well.
Status Submission::issue_work(Stream& stream, Operation operation, LibraryWork& work) {
  const auto host = Libraries::written_on_host(work.call());
  const Status called = host && !window_.pinned(host->address, host->bytes)
                            ? heddle::fail(ErrorCode::kInvalidArgument, "cuRAND: no pinned memory of the program")
                            : libraries_.call(work.call(), stream.index, stream.handle);
  operation.computes = true;
  if (!called) return refuse(stream, std::move(operation), called.error().text);
  return in_flight_.append(stream, std::move(operation), CUDA_SUCCESS, "", false);
}

// ---- Copies and fills ----

Status Submission::issue_work(Stream& stream, Operation operation, CopyWork& work) {
  using device::CopyDirection;
  const auto& [to, from, width, height, depth] = work.shape;
  if (work.bytes == 0) return issue_mark(stream, std::move(operation));
  const auto accessible = [this](uint64_t address, uint64_t bytes) { return window_.accessible(address, bytes); };
  auto problem = check_rows("copy", to, width, height, depth, accessible);
  if (!problem) problem = check_rows("copy", from, width, height, depth, accessible);
  if (problem) return refuse(stream, std::move(operation), std::move(*problem));
  const device::CopyEnd& host = work.direction == CopyDirection::kToDevice ? from : to;
  const bool direct =
      work.direction == CopyDirection::kOnDevice ||
      (work.direction != CopyDirection::kOnHost && window_.pinned(host.address, extent(host, width, height, depth)));
  if (direct) {
    const CUresult result = followed(stream, enqueue_copy(driver_, stream.handle, work.direction, work.shape), to,
                                     extent(to, width, height, depth));
    return in_flight_.append(stream, std::move(operation), result, "copy", true);
  }
  auto staged = std::make_unique<StagedCopy>();
  if (work.direction != CopyDirection::kOnHost) {
    const auto buffer = in_flight_.staging().take(work.bytes);
    if (!buffer) return tl::unexpected(buffer.error());
    staged->buffer = *buffer;
  }
  const CUresult result = followed(stream, enqueue_staged(driver_, stream.handle, work.direction, work.shape, *staged),
                                   to, extent(to, width, height, depth));
  operation.staged = std::move(staged);
  return in_flight_.append(stream, std::move(operation), result, "copy", true);
}

Status Submission::issue_work(Stream& stream, Operation operation, FillWork& work) {
  const device::FillShape& shape = work.shape;
  if (work.bytes == 0) return issue_mark(stream, std::move(operation));
  const auto accessible = [this](uint64_t address, uint64_t bytes) { return window_.accessible(address, bytes); };
  if (auto problem = check_rows("fill", shape.to, shape.width, shape.height, shape.depth, accessible))
    return refuse(stream, std::move(operation), std::move(*problem));
  const CUresult result = followed(stream, enqueue_fill(driver_, stream.handle, shape), shape.to,
                                   extent(shape.to, shape.width, shape.height, shape.depth));
  return in_flight_.append(stream, std::move(operation), result, "fill", false);
}

// What was written goes on into the images of arrays.
CUresult Submission::followed(const Stream& stream, CUresult result, const device::CopyEnd& to, uint64_t bytes) {
  return result == CUDA_SUCCESS ? textures_.written(stream.handle, to.address, bytes) : result;
}

// ---- Order ----

// A mark on an idle stream has completed before this returns.
Status Submission::issue_mark(Stream& stream, Operation operation) {
  if (!in_flight_.streams().has_turn(stream))
    return in_flight_.append(stream, std::move(operation), CUDA_SUCCESS, "", true);
  in_flight_.complete_at_once(stream, std::move(operation));
  return {};
}

Status Submission::issue_work(Stream& stream, Operation operation, MarkWork&) {
  operation.mark = true;
  return issue_mark(stream, std::move(operation));
}

Status Submission::issue_work(Stream& stream, Operation operation, HoldWork&) {
  in_flight_.streams().hold(stream, operation);
  return issue_mark(stream, std::move(operation));
}

Status Submission::issue_work(Stream& stream, Operation operation, WaitWork& work) {
  const auto [other, awaited] = in_flight_.streams().issued(work.awaited);
  if (!other || other == &stream) return issue_mark(stream, std::move(operation));
  // The first fence that covers it; without one it is covered now, with whatever followed it.
  const auto covers = [sequence = awaited->sequence](const Fence& each) { return each.sequence >= sequence; };
  auto found = std::find_if(other->fences.begin(), other->fences.end(), covers);
  CUresult result = CUDA_SUCCESS;
  if (found == other->fences.end() && (result = in_flight_.fence(*other, false)) == CUDA_SUCCESS)
    found = std::prev(other->fences.end());
  if (result == CUDA_SUCCESS) result = driver_.cuStreamWaitEvent(stream.handle, found->event, CU_EVENT_WAIT_DEFAULT);
  return in_flight_.append(stream, std::move(operation), result, "cuStreamWaitEvent", false);
}

// CUDA's legacy default stream: its operations follow what all blocking streams were given before, and those follow it.
CUresult Submission::keep_legacy_order(Stream& stream) {
  if (stream.non_blocking) return CUDA_SUCCESS;
  Stream& legacy = in_flight_.streams().legacy();
  if (!stream.legacy()) return follow(stream, legacy, stream.legacy_seen);
  for (const auto& other : in_flight_.streams().all()) {
    if (other->non_blocking || other->legacy()) continue;
    if (const CUresult result = follow(legacy, *other, other->followed); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Makes `stream` wait for what `other` has been given, unless it does already.
CUresult Submission::follow(Stream& stream, Stream& other, uint64_t& seen) {
  if (other.pending.empty() || seen >= other.tail) return CUDA_SUCCESS;
  if (other.fences.empty() || other.fences.back().sequence < other.tail) {
    if (const CUresult result = in_flight_.fence(other, false); result != CUDA_SUCCESS) return result;
  }
  seen = other.tail;
  return driver_.cuStreamWaitEvent(stream.handle, other.fences.back().event, CU_EVENT_WAIT_DEFAULT);
}

}  // namespace heddle::cuda
