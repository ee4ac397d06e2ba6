#include "client/graph/exec.h"

#include <algorithm>

#include "client/copy/copy.h"
#include "client/copy/copy_pieces.h"
#include "client/device/driver_needs.h"
#include "client/stream/events.h"
#include "client/stream/library_calls.h"

namespace heddle::client {
namespace {

constexpr size_t kMaxBranches = 8;  // those beyond share streams

// Never destroyed, like the graphs. Shared: a launch goes on while another thread destroys the handle.
struct Execs {
  std::mutex mutex;
  std::unordered_map<const void*, std::shared_ptr<GraphExec>> alive;
};
Execs& execs() {
  static auto* const all = new Execs;
  return *all;
}

bool is_pageable(const CopyPlan& plan) {
  return !plan.to.in_window() || !plan.from.in_window();
}

}  // namespace

std::optional<std::vector<size_t>> GraphExec::flatten(const Graph& graph, const std::vector<size_t>& before,
                                                      Steps& steps) {
  const auto order = graph.sorted();
  if (!order) return std::nullopt;
  std::unordered_map<const GraphNode*, size_t> index;
  std::vector<size_t> last;
  for (GraphNode* node : *order) {
    Step step{node->id, node};
    for (const GraphNode* other : node->dependencies) step.dependencies.push_back(index.at(other));
    if (node->dependencies.empty()) step.dependencies = before;
    if (const auto* child = std::get_if<ChildWork>(&node->work)) {
      step.is_child = true;
      step.first_inside = steps.size();
      auto inner = flatten(*child->graph, step.dependencies, steps);
      if (!inner) return std::nullopt;
      if (!inner->empty()) step.dependencies = std::move(*inner);
    } else {
      step.work = node->work;
    }
    index[node] = steps.size();
    if (graph.dependents(node).empty()) last.push_back(steps.size());
    steps.push_back(std::move(step));
  }
  return last;
}

tl::expected<std::shared_ptr<GraphExec>, GraphExec::Refusal> GraphExec::instantiate(Graph& graph,
                                                                                    unsigned long long flags) {
  const auto refused = [](cudaGraphInstantiateResult result, GraphNode* node, Failure failure) {
    return tl::unexpected(Refusal{result, node, std::move(failure)});
  };
  std::shared_ptr<GraphExec> exec(new GraphExec);
  exec->flags_ = flags;
  if (graph.has_memory_nodes()) {
    if (!graph.instantiated.expired())
      return refused(cudaGraphInstantiateError, nullptr,
                     {cudaErrorNotSupported,
                      "a CUDA graph that allocates or frees memory can only be instantiated once at a time"});
    graph.instantiated = exec->only_one_ = std::make_shared<char>();
  }
  if (!flatten(graph, {}, exec->steps_))
    return refused(cudaGraphInstantiateInvalidStructure, nullptr, {cudaErrorInvalidValue, {}});
  for (Step& step : exec->steps_) {
    if (auto fits = exec->check_device(device_of(step.work)); !fits)
      return refused(cudaGraphInstantiateMultipleDevicesNotSupported, step.shown, fits.error());
  }
  for (Step& step : exec->steps_) {
    auto prepared = exec->stage(step, step.work);
    if (prepared) prepared = exec->open_bodies(step, step.work);
    if (!prepared) return refused(cudaGraphInstantiateError, step.shown, prepared.error());
  }
  exec->assign_branches();
  exec->references_ = graph.references;
  retain(exec->references_);
  return exec;
}

GraphExec::~GraphExec() {
  close();
}

void GraphExec::close() {
  const std::lock_guard lock(mutex_);
  const bool keeps = !pinned_.empty() || !references_.empty() || !conditions_.empty();
  if (keeps && device_ && end_ != 0) (void)device_->synchronize();  // a failure shows at the program's next call
  for (const uint64_t address : pinned_) (void)runtime().host_memory().release(address);
  pinned_.clear();
  release(std::exchange(references_, {}));
  if (branches_.empty()) return;
  for (size_t i = 1; i < branches_.size(); ++i) branches_[i].device->streams().close(branches_[i].slot);
  branches_.clear();
}

Done GraphExec::check_device(VirtualDevice* wanted) {
  if (wanted && device_ && wanted != device_)
    return refuse(cudaErrorNotSupported, "a CUDA graph with work on several devices is not supported");
  if (wanted) device_ = wanted;
  return {};
}

// The pinned memory that a step had before may still be in use: it stays until the end.
Done GraphExec::stage(Step& step, const Work& work) {
  const auto* copy = std::get_if<CopyWork>(&work);
  if (!copy || !is_pageable(copy->plan) || !device_of(work)) return {};
  const CopyShape& shape = copy->plan.shape;
  const uint64_t bytes = shape.width * shape.height * shape.depth;
  if (bytes <= step.staging_bytes) return {};
  auto place = runtime().host_memory().allocate(device_of(work)->index(), bytes, HostMemory::kPinned);
  if (!place) return tl::unexpected(std::move(place).error());
  pinned_.push_back(place->address);
  step.staging = place->address;
  step.staging_bytes = bytes;
  return place->new_segment != 0 ? runtime().announce_host_segment(place->new_segment) : Done{};
}

// A step goes on in the branch of something that it waits for, if nothing else does; else it opens one.
void GraphExec::assign_branches() {
  std::vector<std::optional<size_t>> last;  // by branch: its last step
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    const auto follows = [&](const std::optional<size_t>& tail) {
      const auto& before = step.dependencies;
      return tail && std::find(before.begin(), before.end(), *tail) != before.end();
    };
    const auto found = std::find_if(last.begin(), last.end(), follows);
    if (found != last.end()) {
      step.branch = static_cast<size_t>(found - last.begin());
    } else if (last.size() < kMaxBranches) {
      step.branch = last.size();
      last.emplace_back();
    } else {
      step.branch = i % kMaxBranches;
    }
    last[step.branch] = i;
  }
  branch_count_ = std::max<size_t>(1, last.size());
}

Done GraphExec::open_branches(const StreamRef& stream) {
  if (device_ && device_ != stream.device)
    return refuse(cudaErrorNotSupported,
                  stringf("a CUDA graph of device %u cannot be launched into a stream of device %u", device_->index(),
                          stream.device->index()));
  device_ = stream.device;
  if (branches_.empty()) branches_.push_back(stream);
  branches_.front() = stream;
  while (branches_.size() < branch_count_) {
    auto slot = device_->open_stream(true, 0);
    if (!slot) return tl::unexpected(std::move(slot).error());
    branches_.push_back({device_, *slot});
  }
  return {};
}

uint64_t GraphExec::tail(size_t branch) {
  return device_->streams().state(branches_[branch].slot).last;
}

// Behind the launch before, and behind everything that the stream was given.
Done GraphExec::begin(const StreamRef& stream) {
  if (end_ != 0 && device_->ring().header().completed.load(std::memory_order_acquire) < end_)
    HEDDLE_ANSWER(enqueue_wait(stream, end_));
  if (branch_count_ == 1) return {};
  auto start = enqueue_marker(stream);
  if (!start) return tl::unexpected(std::move(start).error());
  for (size_t branch = 1; branch < branch_count_; ++branch) HEDDLE_ANSWER(enqueue_wait(branches_[branch], *start));
  return {};
}

// Before anything of the graph is in a stream: a launch that is refused leaves nothing behind.
Done GraphExec::charge_kernels(VirtualDevice& device) {
  for (const Step& step : steps_) {
    const auto* kernel = std::get_if<KernelWork>(&step.work);
    if (kernel && step.enabled) HEDDLE_ANSWER(charge_launch(device, *kernel->function));
    const auto* called = std::get_if<LibraryWork>(&step.work);
    if (called && step.enabled) HEDDLE_ANSWER(charge_library(device, called->library));
    for (const auto& body : step.bodies) HEDDLE_ANSWER(body->charge_kernels(device));
  }
  return {};
}

Done GraphExec::launch(const StreamRef& stream) {
  const std::lock_guard lock(mutex_);
  HEDDLE_ANSWER(stream.device->failure());
  HEDDLE_ANSWER(open_branches(stream));
  HEDDLE_ANSWER(charge_kernels(*device_));
  const Condition::Uses uses(conditions_);
  for (const auto& condition : conditions_) HEDDLE_ANSWER(condition->assign(stream));
  HEDDLE_ANSWER(launch_steps(stream));
  for (const auto& condition : conditions_) condition->used_until(end_);
  return {};
}

Done GraphExec::launch_steps(const StreamRef& stream) {
  if (only_one_) HEDDLE_ANSWER(allocate(stream));
  HEDDLE_ANSWER(begin(stream));
  std::vector<uint64_t> done(steps_.size());  // the record that says so
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& step = steps_[i];
    for (const size_t before : step.dependencies) {
      if (steps_[before].branch != step.branch && done[before] != 0)
        HEDDLE_ANSWER(enqueue_wait(branches_[step.branch], done[before]));
    }
    if (step.enabled) HEDDLE_ANSWER(run(branches_[step.branch], step));
    done[i] = tail(step.branch);
  }
  HEDDLE_ANSWER(join());
  return only_one_ ? free(stream) : Done{};
}

Done GraphExec::allocate(const StreamRef& stream) {
  GraphMemory& memory = graph_memory();
  std::vector<GraphAllocationPtr> own;
  for (const Step& step : steps_) {
    const auto* made = std::get_if<AllocWork>(&step.work);
    if (!made) continue;
    own.push_back(made->memory);
    if (!memory.is_live(made->memory)) continue;
    if (!(flags_ & cudaGraphInstantiateFlagAutoFreeOnLaunch))
      return refuse(
          cudaErrorInvalidValue,
          stringf("a CUDA graph is launched while what it allocated at 0x%llx is not freed; free it before, or "
                  "instantiate with cudaGraphInstantiateFlagAutoFreeOnLaunch",
                  static_cast<unsigned long long>(made->memory->address)));
    HEDDLE_ANSWER(memory.free(made->memory, &stream));
  }
  for (const Step& step : steps_) {
    const auto* freed = std::get_if<FreeWork>(&step.work);
    if (!freed || memory.is_live(freed->memory)) continue;
    if (std::find(own.begin(), own.end(), freed->memory) == own.end())
      return refuse(cudaErrorInvalidValue,
                    stringf("a CUDA graph frees memory at 0x%llx, but no launch has allocated it",
                            static_cast<unsigned long long>(freed->memory->address)));
  }
  return memory.allocate(own, stream);
}

// Everything has joined the stream: what comes behind in it may have the memory.
Done GraphExec::free(const StreamRef& stream) {
  for (const Step& step : steps_) {
    if (const auto* freed = std::get_if<FreeWork>(&step.work))
      HEDDLE_ANSWER(graph_memory().free(freed->memory, &stream));
  }
  return {};
}

Done GraphExec::join() {
  for (size_t branch = 1; branch < branch_count_; ++branch) HEDDLE_ANSWER(enqueue_wait(branches_[0], tail(branch)));
  end_ = tail(0);
  return {};
}

Done GraphExec::run(const StreamRef& branch, Step& step) {
  if (auto* kernel = std::get_if<KernelWork>(&step.work))
    return launch_on(branch, *kernel->function, kernel->shape, kernel->arguments().data());
  if (auto* called = std::get_if<LibraryWork>(&step.work)) {
    if (called->keeper) called->keeper->renew(called->words);
    return call_library(branch, called->call(), false);
  }
  if (const auto* copy = std::get_if<CopyWork>(&step.work)) return run_copy(branch, step, *copy);
  if (const auto* fill = std::get_if<FillWork>(&step.work)) {
    auto sequence = enqueue_fill(branch, fill->fill);
    return sequence ? Done{} : Done(tl::unexpected(std::move(sequence).error()));
  }
  if (std::holds_alternative<ConditionalWork>(step.work)) return decide(branch, step);
  if (const auto* host = std::get_if<HostWork>(&step.work))
    return enqueue_host_function(branch, host->function, host->data);
  if (const auto* record = std::get_if<EventRecordWork>(&step.work)) {
    auto event = resolve_event(record->event);
    return event ? record_event(*event, branch) : Done(tl::unexpected(std::move(event).error()));
  }
  if (const auto* wait = std::get_if<EventWaitWork>(&step.work)) {
    auto event = resolve_event(wait->event);
    return event ? wait_for_event(branch, *event) : Done(tl::unexpected(std::move(event).error()));
  }
  return {};
}

Done GraphExec::run_copy(const StreamRef& branch, const Step& step, const CopyWork& work) {
  const CopyPlace &to = work.plan.to, &from = work.plan.from;
  const CopyShape shape = work.plan.shape;
  if (!is_pageable(work.plan)) return copy(branch, to, from, shape, CopyMode::kAsync);
  const auto move = [shape](const CopyPlace& target, const CopyPlace& source) {
    return [shape, target, source](cudaError_t status) {
      if (status == cudaSuccess) copy_rows_on_host(target, source, shape);
    };
  };
  if (!to.on_device() && !from.on_device()) return enqueue_host_call(branch, move(to, from));
  CopyPlace staging;
  staging.kind = CopyPlace::kPinned;
  staging.address = step.staging;
  staging.pitch = shape.width;
  staging.slice = shape.width * shape.height;
  if (to.on_device()) {
    HEDDLE_ANSWER(enqueue_host_call(branch, move(staging, from)));
    return copy(branch, to, staging, shape, CopyMode::kAsync);
  }
  HEDDLE_ANSWER(copy(branch, staging, from, shape, CopyMode::kAsync));
  return enqueue_host_call(branch, move(to, staging));
}

Answer<std::shared_ptr<Graph>> GraphExec::as_graph() {
  const std::lock_guard lock(mutex_);
  if (only_one_)
    return refuse(cudaErrorNotSupported, "a CUDA graph that allocates or frees memory cannot be the child of another");
  auto graph = std::make_shared<Graph>();
  std::vector<GraphNode*> made;
  for (const Step& step : steps_) {
    std::vector<GraphNode*> before;
    for (const size_t index : step.dependencies) before.push_back(made[index]);
    made.push_back(graph->add(step.enabled ? step.work : Work{}, std::move(before)));
  }
  graph->references = references_;
  retain(references_);
  return graph;
}

Answer<std::shared_ptr<GraphExec>> resolve_exec(cudaGraphExec_t handle) {
  const std::lock_guard lock(execs().mutex);
  const auto found = execs().alive.find(handle);
  if (found == execs().alive.end()) return refuse(cudaErrorInvalidValue);
  return found->second;
}

cudaGraphExec_t keep_exec(std::shared_ptr<GraphExec> exec) {
  const std::lock_guard lock(execs().mutex);
  const auto handle = reinterpret_cast<cudaGraphExec_t>(exec.get());
  execs().alive.emplace(handle, std::move(exec));
  return handle;
}

Done destroy_exec(cudaGraphExec_t handle) {
  std::shared_ptr<GraphExec> last;  // ends without the lock
  const std::lock_guard lock(execs().mutex);
  const auto found = execs().alive.find(handle);
  if (found == execs().alive.end()) return refuse(cudaErrorInvalidValue);
  last = std::move(found->second);
  execs().alive.erase(found);
  return {};
}

}  // namespace heddle::client
