#include "client/graph/conditional_nodes.h"

#include "client/graph/condition.h"

namespace heddle::client {
namespace {

bool may_have(cudaGraphConditionalNodeType type, unsigned bodies) {
  if (type == cudaGraphCondTypeIf) return bodies == 1 || bodies == 2;
  if (type == cudaGraphCondTypeWhile) return bodies == 1;
  return type == cudaGraphCondTypeSwitch && bodies > 0;
}

}  // namespace

Done add_choice(const NewNode& at, cudaConditionalNodeParams& p) {
  auto condition = Condition::find(p.handle);
  if (!condition) return tl::unexpected(std::move(condition).error());
  if (!may_have(p.type, p.size)) return refuse(cudaErrorInvalidValue);
  auto choice = std::make_shared<Choice>(Choice{std::move(*condition), p.type, {}, {}});
  while (choice->bodies.size() < p.size) choice->add(std::make_shared<Graph>());
  p.phGraph_out = choice->handles.data();
  return add_made(at, [&](Graph&, const std::vector<GraphNode*>&) -> Answer<Work> { return ConditionalWork{choice}; });
}

}  // namespace heddle::client
