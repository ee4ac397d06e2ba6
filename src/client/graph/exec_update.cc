// GraphExec: what a program changes in an instantiated graph.

#include <algorithm>

#include "client/graph/exec.h"

namespace heddle::client {

Answer<GraphExec::Step*> GraphExec::step_of(const GraphNode& node) {
  const auto found = std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) { return step.node == node.id; });
  if (found == steps_.end()) return refuse(cudaErrorInvalidValue);
  return &*found;
}

Done GraphExec::replace(Step& step, Work work) {
  HEDDLE_ANSWER(check_device(device_of(work)));
  HEDDLE_ANSWER(stage(step, work));
  HEDDLE_ANSWER(open_bodies(step, work));
  step.work = std::move(work);
  return {};
}

Done GraphExec::set_work(const GraphNode& node, Work work) {
  const std::lock_guard lock(mutex_);
  auto step = step_of(node);
  if (!step) return tl::unexpected(std::move(step).error());
  if ((*step)->is_child || type_of((*step)->work) != type_of(work)) return refuse(cudaErrorInvalidValue);
  return replace(**step, std::move(work));
}

Done GraphExec::set_enabled(const GraphNode& node, bool enabled) {
  const std::lock_guard lock(mutex_);
  auto step = step_of(node);
  if (!step) return tl::unexpected(std::move(step).error());
  const cudaGraphNodeType type = type_of((*step)->work);
  const bool can =
      type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
  if (!can) return refuse(cudaErrorInvalidValue);
  (*step)->enabled = enabled;
  return {};
}

Answer<bool> GraphExec::enabled(const GraphNode& node) {
  const std::lock_guard lock(mutex_);
  auto step = step_of(node);
  if (!step) return tl::unexpected(std::move(step).error());
  return (*step)->enabled;
}

std::optional<size_t> GraphExec::difference(const Steps& found, const Steps& steps, size_t first) {
  for (size_t i = 0; i < found.size(); ++i) {
    if (first + i >= steps.size()) return i;
    const Step &ours = steps[first + i], &theirs = found[i];
    std::vector<size_t> inside;  // what comes from outside is the same for all that begin in a child
    for (const size_t before : ours.dependencies) {
      if (before >= first) inside.push_back(before - first);
    }
    if (inside != theirs.dependencies || ours.is_child != theirs.is_child || type_of(ours.work) != type_of(theirs.work))
      return i;
  }
  return std::nullopt;
}

Done GraphExec::set_child(const GraphNode& node, const Graph& child) {
  const std::lock_guard lock(mutex_);
  auto step = step_of(node);
  if (!step) return tl::unexpected(std::move(step).error());
  const auto index = static_cast<size_t>(*step - steps_.data());
  Steps found;
  if (!(*step)->is_child || !flatten(child, {}, found)) return refuse(cudaErrorInvalidValue);
  const size_t first = (*step)->first_inside;
  if (found.size() != index - first || difference(found, steps_, first)) return refuse(cudaErrorInvalidValue);
  for (size_t i = 0; i < found.size(); ++i) HEDDLE_ANSWER(replace(steps_[first + i], std::move(found[i].work)));
  return {};
}

Done GraphExec::update(const Graph& graph, cudaGraphExecUpdateResultInfo& info) {
  const std::lock_guard lock(mutex_);
  info = {cudaGraphExecUpdateErrorTopologyChanged, nullptr, nullptr};
  Steps found;
  if (!flatten(graph, {}, found)) return refuse(cudaErrorGraphExecUpdateFailure);
  const auto differs = difference(found, steps_, 0);
  if (differs || found.size() != steps_.size()) {
    if (differs) info.errorNode = handle_of(found[*differs].shown);
    const bool other_type =
        differs && *differs < steps_.size() && found[*differs].dependencies == steps_[*differs].dependencies;
    if (other_type) info.result = cudaGraphExecUpdateErrorNodeTypeChanged;
    return refuse(cudaErrorGraphExecUpdateFailure);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    GraphNode* const shown = found[i].shown;
    if (replace(steps_[i], std::move(found[i].work))) continue;
    info = {cudaGraphExecUpdateErrorParametersChanged, handle_of(shown), nullptr};
    return refuse(cudaErrorGraphExecUpdateFailure);
  }
  retain(graph.references);
  release(std::exchange(references_, graph.references));
  info.result = cudaGraphExecUpdateSuccess;
  return {};
}

}  // namespace heddle::client
