#pragma once

#include <atomic>
#include <set>
#include <thread>

#include "client/graph/graph.h"
#include "client/stream/events.h"

// Stream capture: while a stream captures, what the program puts into it becomes nodes of a graph.
//
// A capture begins in one stream; others join it by waiting for an event that was recorded in it, and must be waited
// for by the first before it ends. Each stream of a capture knows the nodes that its next one comes behind. What would
// break the capture (waiting for it, legacy stream against blocking streams, calls that may wait for the device) fails
// with CUDA's code, and the capture with it: CUDA calls it invalidated until cudaStreamEndCapture.
//
// Thread safety: any thread. A program that captures nothing pays one load for each call.
namespace heddle::client {

class Captures {
 public:
  struct Info {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    uint64_t id = 0;
    Graph* graph = nullptr;
    const std::vector<GraphNode*>* dependencies = nullptr;  // until the stream's next call
  };

  bool any() const { return active_.load(std::memory_order_relaxed) != 0; }

  // `graph`: where nodes go, behind `dependencies`; null: into a new one.
  Done begin(const StreamRef& stream, cudaStreamCaptureMode mode, Graph* graph, std::vector<GraphNode*> dependencies);
  // `takes_graph`: the program has a place for a graph that it does not have yet; cudaErrorInvalidValue where it needs
  // one.
  Answer<Graph*> end(const StreamRef& stream, bool takes_graph);
  Info info(const StreamRef& stream);
  Done set_dependencies(const StreamRef& stream, const std::vector<GraphNode*>& nodes, bool replace);

  // Whether calls on this stream are captured. cudaErrorStreamCaptureInvalidated where they were.
  Answer<bool> holds(const StreamRef& stream);
  void add(const StreamRef& stream, Work work);

  // Events: true where the call belongs to a capture and is done.
  Answer<bool> record(cudaEvent_t event, const StreamRef& stream, bool external);
  Answer<bool> wait(const StreamRef& stream, cudaEvent_t event, const EventRef& ref, bool external);
  // cudaErrorCapturedEvent for an event that was last recorded in a capture.
  Done check_event(cudaEvent_t event);
  void forget_event(cudaEvent_t event);

  // For calls that no capture survives: waiting for the stream.
  Done refuse_on(const StreamRef& stream);
  // The program destroys the stream. No capture survives that of the one it began in; what others were given stays.
  Done stream_ends(const StreamRef& stream);
  // For calls that wait for the whole device.
  Done refuse_on(const VirtualDevice& device);
  // The legacy stream waits for blocking streams, of which none may be capturing then.
  Done check_legacy(VirtualDevice* device);
  // For calls that might wait for the device: what the thread's mode makes of them.
  Done check_unsafe();
  cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode);

 private:
  using Stream = std::pair<VirtualDevice*, uint32_t>;
  struct Sequence {
    uint64_t id = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;
    Stream origin;
    Graph* graph = nullptr;
    std::unique_ptr<Graph> owned;  // a graph that the program does not have yet
    bool invalid = false;
    std::map<Stream, std::vector<GraphNode*>> streams;
    std::vector<GraphNode*> ended;  // the last nodes of streams that are destroyed
  };
  struct CapturedEvent {
    uint64_t sequence = 0;
    std::vector<GraphNode*> nodes;
  };

  Sequence* of(const StreamRef& stream);
  void forget(const Sequence& sequence);

  std::atomic<uint32_t> active_{0};
  std::atomic<bool> any_event_{false};  // was ever captured
  std::mutex mutex_;                    // guards what follows
  uint64_t next_id_ = 1;
  std::map<uint64_t, Sequence> sequences_;
  std::map<cudaEvent_t, CapturedEvent> events_;
};

Captures& captures();

}  // namespace heddle::client
