// GraphExec: conditional nodes. Their conditions are words that kernels write; nothing of the ring or a worker knows of
// them. A launch waits where one decides, and then launches the graph that it chooses into the same stream.

#include <algorithm>

#include "client/graph/exec.h"

namespace heddle::client {
namespace {

// Which body comes next; nullptr: none.
GraphExec* chosen(const Choice& choice, const std::vector<std::shared_ptr<GraphExec>>& bodies) {
  const uint32_t value = choice.condition->value();
  size_t index = value;
  if (choice.type != cudaGraphCondTypeSwitch)
    index = value != 0 ? 0 : choice.type == cudaGraphCondTypeIf ? 1 : bodies.size();
  return index < bodies.size() ? bodies[index].get() : nullptr;
}

}  // namespace

Done GraphExec::open_bodies(Step& step, const Work& work) {
  const auto* conditional = std::get_if<ConditionalWork>(&work);
  if (!conditional) return {};
  std::vector<std::shared_ptr<GraphExec>> opened;
  std::vector<std::shared_ptr<Condition>> conditions{conditional->choice->condition};
  for (const auto& body : conditional->choice->bodies) {
    if (body->has_memory_nodes())
      return refuse(cudaErrorNotSupported,
                    "the body of a conditional node of a CUDA graph cannot allocate or free memory");
    auto exec = instantiate(*body, 0);
    if (!exec) return tl::unexpected(std::move(exec).error().failure);
    HEDDLE_ANSWER(check_device((*exec)->device_));
    conditions.insert(conditions.end(), (*exec)->conditions_.begin(), (*exec)->conditions_.end());
    opened.push_back(std::move(*exec));
  }
  step.bodies = std::move(opened);
  conditions_.insert(conditions_.end(), conditions.begin(), conditions.end());
  std::sort(conditions_.begin(), conditions_.end());
  conditions_.erase(std::unique(conditions_.begin(), conditions_.end()), conditions_.end());
  return {};
}

// Behind all that was launched so far, in other branches too: the kernel that sets a condition is found there even
// where a program leaves out the edge, as graphConditionalNodes of NVIDIA's samples does.
Done GraphExec::decide(const StreamRef& branch, const Step& step) {
  const Choice& choice = *std::get<ConditionalWork>(step.work).choice;
  for (size_t other = 0; other < branch_count_; ++other) {
    if (other != step.branch) HEDDLE_ANSWER(enqueue_wait(branch, tail(other)));
  }
  do {
    auto last = last_of(branch);
    if (!last) return tl::unexpected(std::move(last).error());
    HEDDLE_ANSWER(branch.device->synchronize_stream(branch.slot, *last));
    GraphExec* const body = chosen(choice, step.bodies);
    if (!body) return {};
    HEDDLE_ANSWER(body->open_branches(branch));
    HEDDLE_ANSWER(body->launch_steps(branch));
  } while (choice.type == cudaGraphCondTypeWhile);
  return {};
}

}  // namespace heddle::client
