#include "client/graph/capture.h"

#include <algorithm>

namespace heddle::client {
namespace {

thread_local cudaStreamCaptureMode t_mode = cudaStreamCaptureModeGlobal;

// Whether `node` is one of `ends` or comes before one.
bool leads_to(const GraphNode* node, const std::vector<GraphNode*>& ends) {
  std::set<const GraphNode*> seen;
  std::vector<const GraphNode*> open(ends.begin(), ends.end());
  while (!open.empty()) {
    const GraphNode* next = open.back();
    open.pop_back();
    if (next == node) return true;
    if (!seen.insert(next).second) continue;
    open.insert(open.end(), next->dependencies.begin(), next->dependencies.end());
  }
  return false;
}

void append_new(std::vector<GraphNode*>& nodes, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
}

}  // namespace

Captures& captures() {
  static auto* const all = new Captures;
  return *all;
}

Captures::Sequence* Captures::of(const StreamRef& stream) {
  for (auto& [id, sequence] : sequences_) {
    if (sequence.streams.contains({stream.device, stream.slot})) return &sequence;
  }
  return nullptr;
}

Done Captures::begin(const StreamRef& stream, cudaStreamCaptureMode mode, Graph* graph,
                     std::vector<GraphNode*> dependencies) {
  if (stream.slot == 0) return refuse(cudaErrorStreamCaptureUnsupported);
  std::unique_ptr<Graph> owned = graph ? nullptr : std::make_unique<Graph>();
  const std::lock_guard lock(mutex_);
  if (of(stream)) return refuse(cudaErrorIllegalState);
  const Stream origin{stream.device, stream.slot};
  Sequence sequence{next_id_++, mode, std::this_thread::get_id(), origin, graph ? graph : owned.get(), nullptr};
  sequence.owned = std::move(owned);
  sequence.streams.emplace(origin, std::move(dependencies));
  const uint64_t id = sequence.id;
  sequences_.emplace(id, std::move(sequence));
  ++active_;
  return {};
}

void Captures::forget(const Sequence& sequence) {
  sequences_.erase(sequence.id);
  --active_;
}

Answer<Graph*> Captures::end(const StreamRef& stream, bool takes_graph) {
  std::unique_ptr<Graph> finished;
  const std::lock_guard lock(mutex_);
  Sequence* const sequence = of(stream);
  if (!sequence) return refuse(cudaErrorIllegalState);
  if (sequence->owned && !takes_graph) return refuse(cudaErrorInvalidValue);
  const bool any_thread = sequence->mode == cudaStreamCaptureModeRelaxed;
  if (!any_thread && sequence->thread != std::this_thread::get_id()) return refuse(cudaErrorStreamCaptureWrongThread);
  if (sequence->origin != Stream{stream.device, stream.slot}) {
    sequence->invalid = true;
    return refuse(cudaErrorStreamCaptureUnmatched);
  }
  finished = std::move(sequence->owned);
  Graph* graph = sequence->graph;
  const bool invalid = sequence->invalid;
  bool joined = true;
  const auto& ends = sequence->streams.at(sequence->origin);
  const auto is_joined = [&](const GraphNode* node) { return leads_to(node, ends); };
  for (const auto& [other, nodes] : sequence->streams) joined &= std::all_of(nodes.begin(), nodes.end(), is_joined);
  joined &= std::all_of(sequence->ended.begin(), sequence->ended.end(), is_joined);
  forget(*sequence);
  if (invalid) return refuse(cudaErrorStreamCaptureInvalidated);
  if (!joined) return refuse(cudaErrorStreamCaptureUnjoined);
  return finished ? keep_graph(std::move(finished)) : graph;
}

Captures::Info Captures::info(const StreamRef& stream) {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  const Sequence* const sequence = of(stream);
  if (!sequence) return {};
  if (sequence->invalid) return {cudaStreamCaptureStatusInvalidated, sequence->id};
  return {cudaStreamCaptureStatusActive, sequence->id, sequence->graph,
          &sequence->streams.at({stream.device, stream.slot})};
}

Done Captures::set_dependencies(const StreamRef& stream, const std::vector<GraphNode*>& nodes, bool replace) {
  const std::lock_guard lock(mutex_);
  Sequence* const sequence = of(stream);
  if (!sequence) return refuse(cudaErrorIllegalState);
  if (sequence->invalid) return refuse(cudaErrorStreamCaptureInvalidated);
  for (const GraphNode* node : nodes) {
    if (node->graph != sequence->graph) return refuse(cudaErrorInvalidValue);
  }
  auto& dependencies = sequence->streams.at({stream.device, stream.slot});
  if (replace) dependencies.clear();
  append_new(dependencies, nodes);
  return {};
}

Answer<bool> Captures::holds(const StreamRef& stream) {
  const std::lock_guard lock(mutex_);
  const Sequence* const sequence = of(stream);
  if (!sequence) return false;
  if (sequence->invalid) return refuse(cudaErrorStreamCaptureInvalidated);
  return true;
}

void Captures::add(const StreamRef& stream, Work work) {
  const std::lock_guard lock(mutex_);
  Sequence* const sequence = of(stream);
  if (!sequence) return;  // another thread has ended it in between
  auto& dependencies = sequence->streams.at({stream.device, stream.slot});
  dependencies = {sequence->graph->add(std::move(work), dependencies)};
}

Answer<bool> Captures::record(cudaEvent_t event, const StreamRef& stream, bool external) {
  if (!any()) {
    forget_event(event);
    return false;
  }
  auto held = holds(stream);
  if (!held) return held;
  if (!*held) {
    forget_event(event);
    return false;
  }
  if (external) {
    add(stream, EventRecordWork{event});
    return true;
  }
  const std::lock_guard lock(mutex_);
  const Sequence* const sequence = of(stream);
  events_[event] = {sequence->id, sequence->streams.at({stream.device, stream.slot})};
  any_event_ = true;
  return true;
}

Answer<bool> Captures::wait(const StreamRef& stream, cudaEvent_t event, const EventRef& ref, bool external) {
  if (!any()) {
    HEDDLE_ANSWER(check_event(event));
    return false;
  }
  const std::lock_guard lock(mutex_);
  Sequence* const here = of(stream);
  if (here && here->invalid) return refuse(cudaErrorStreamCaptureInvalidated);
  if (here && external) {
    auto& dependencies = here->streams.at({stream.device, stream.slot});
    dependencies = {here->graph->add(EventWaitWork{event}, dependencies)};
    return true;
  }
  const auto recorded = events_.find(event);
  if (recorded == events_.end()) {
    if (!here || ref.state.last == 0) return here != nullptr;  // an event that was never recorded holds nobody back
    here->invalid = true;
    return refuse(cudaErrorStreamCaptureIsolation);
  }
  const auto there = sequences_.find(recorded->second.sequence);
  if (there == sequences_.end()) return refuse(cudaErrorCapturedEvent);
  if (there->second.invalid) return refuse(cudaErrorStreamCaptureInvalidated);
  if (here && here != &there->second) {
    here->invalid = there->second.invalid = true;
    return refuse(cudaErrorStreamCaptureMerge);
  }
  if (stream.slot == 0) return refuse(cudaErrorStreamCaptureImplicit);
  append_new(there->second.streams[{stream.device, stream.slot}], recorded->second.nodes);
  return true;
}

Done Captures::check_event(cudaEvent_t event) {
  if (!any_event_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  const auto recorded = events_.find(event);
  if (recorded == events_.end()) return {};
  if (const auto sequence = sequences_.find(recorded->second.sequence); sequence != sequences_.end())
    sequence->second.invalid = true;
  return refuse(cudaErrorCapturedEvent);
}

void Captures::forget_event(cudaEvent_t event) {
  if (!any_event_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}

Done Captures::refuse_on(const StreamRef& stream) {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  Sequence* const sequence = of(stream);
  if (!sequence) return {};
  if (sequence->invalid) return refuse(cudaErrorStreamCaptureInvalidated);
  sequence->invalid = true;
  return refuse(cudaErrorStreamCaptureUnsupported);
}

Done Captures::stream_ends(const StreamRef& stream) {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  Sequence* const sequence = of(stream);
  if (!sequence) return {};
  const Stream key{stream.device, stream.slot};
  if (key == sequence->origin) {
    sequence->invalid = true;
    return refuse(cudaErrorStreamCaptureUnsupported);
  }
  append_new(sequence->ended, sequence->streams.at(key));
  sequence->streams.erase(key);
  return {};
}

Done Captures::refuse_on(const VirtualDevice& device) {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  bool conflict = false;
  for (auto& [id, sequence] : sequences_) {
    for (const auto& [stream, nodes] : sequence.streams) {
      if (stream.first == &device) sequence.invalid = conflict = true;
    }
  }
  return conflict ? refuse(cudaErrorStreamCaptureUnsupported) : Done{};
}

Done Captures::check_legacy(VirtualDevice* device) {
  if (!any()) return {};
  const std::lock_guard lock(mutex_);
  bool conflict = false;
  for (auto& [id, sequence] : sequences_) {
    for (const auto& [stream, nodes] : sequence.streams) {
      if (stream.first != device) continue;
      if (device->streams().state(stream.second).non_blocking) continue;
      sequence.invalid = conflict = true;
    }
  }
  return conflict ? refuse(cudaErrorStreamCaptureImplicit) : Done{};
}

Done Captures::check_unsafe() {
  if (!any() || t_mode == cudaStreamCaptureModeRelaxed) return {};
  const std::lock_guard lock(mutex_);
  bool conflict = false;
  for (auto& [id, sequence] : sequences_) {
    const bool mine = sequence.thread == std::this_thread::get_id() && sequence.mode != cudaStreamCaptureModeRelaxed;
    const bool anyones = t_mode == cudaStreamCaptureModeGlobal && sequence.mode == cudaStreamCaptureModeGlobal;
    if (!mine && !anyones) continue;
    sequence.invalid = conflict = true;
  }
  return conflict ? refuse(cudaErrorStreamCaptureUnsupported) : Done{};
}

cudaStreamCaptureMode Captures::exchange_mode(cudaStreamCaptureMode mode) {
  return std::exchange(t_mode, mode);
}

}  // namespace heddle::client
