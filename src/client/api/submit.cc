#include "client/api/submit.h"

namespace heddle::client {

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

}  // namespace heddle::client
