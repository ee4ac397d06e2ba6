#include "client/api/submit.h"

namespace heddle::client {
namespace {

// Asynchronous on device memory, as in CUDA; host memory is filled when the call returns.
Done fill_now(const StreamRef& stream, const Fill& fill) {
  StreamRef own = stream;
  if (fill.to.on_device() && fill.to.device != own.device) {
    HEDDLE_ANSWER(own.device->synchronize());
    own = {fill.to.device, 0};
  }
  auto sequence = enqueue_fill(own, fill);
  if (!sequence) return tl::unexpected(std::move(sequence).error());
  return fill.to.kind == CopyPlace::kPinned ? own.device->synchronize_stream(own.slot, *sequence) : Done{};
}

}  // namespace

Done admit(const StreamRef& stream) {
  if (stream.slot == 0) HEDDLE_ANSWER(captures().check_legacy(&stream.device->home()));
  return stream.device->side_devices().any() ? join_side_devices(stream) : Done{};
}

Done submit_copy(const StreamRef& stream, const CopyPlan& plan, CopyMode mode) {
  const auto enqueue = [&] { return copy(stream, plan.to, plan.from, plan.shape, mode); };
  if (mode == CopyMode::kAsync)
    return submit(
        stream, [&] { return copy_work(plan); }, enqueue);
  HEDDLE_ANSWER(captures().refuse_on(stream));
  HEDDLE_ANSWER(captures().check_unsafe());
  return enqueue();
}

Done submit_fill(const StreamRef& stream, const Fill& fill) {
  const auto work = [&]() -> Answer<Work> {
    if (!fill.to.in_window()) return refuse(cudaErrorInvalidValue);
    return fill_work(fill);
  };
  return submit(stream, work, [&] { return fill_now(stream, fill); });
}

}  // namespace heddle::client
