#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "protocol/ring_reader.h"
#include "protocol/socket.h"

// A heddled and its workers for the client's tests: real sockets and real rings, in threads of the test. Segments are
// mapped at their addresses in this very process, so a test can look into "device memory" through the pointers.
namespace heddle::client::testing {

struct FakeOptions {
  uint32_t devices = 1;
  uint32_t side_devices = 0;
  uint64_t budget = 64 * kMiB;
  bool grants_at_malloc = false;
  DeviceKind kind = DeviceKind::kSoftware;  // as which the devices are shown
  protocol::RingSizes ring{Bytes{256 * kKiB}, Bytes{2 * kMiB}};
  bool shows_ahead =
      false;  // launches, copies and fills are committed when somebody wants it, or with a record of another kind
};

class FakeHeddled {
 public:
  using Kernel = std::function<void(const protocol::LaunchRecord&, const char* parameters)>;

  // Listens at a path of its own and points HEDDLE_SOCKET there.
  explicit FakeHeddled(FakeOptions options);
  ~FakeHeddled();

  // What a launch does; kernels that nobody set do nothing.
  void set_kernel(Kernel kernel);
  // Tasks are announced, but no worker comes until go().
  void hold();
  void go();
  // Device memory that is asked for is not answered until answer_memory().
  void hold_memory() { memory_held_ = true; }
  void answer_memory() { memory_held_ = false; }
  // The next record fails with this CUDA code.
  void fault_next(uint32_t cuda_error, const std::string& text);
  // Whether nobody waits, so that programs may keep what they free.
  void allow_idle(bool allowed);
  // Whether the first device's task is away, as its ring says it. Its worker works on.
  void say_away(bool away);
  // The first device's worker gives back what is idle: "reclaimed 1", "ended 1" (numbers of segments and of the task).
  void reclaim();
  // What it notes of a record comes a little after the program's call.
  template <class Holds>
  static bool eventually(Holds&& holds) {
    for (int i = 0; i < 5000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return holds();
  }
  // Whether all tasks that began have ended, and the log has it.
  bool serves_nobody() const;
  // Whether tasks apart are granted.
  void grant_apart(bool grants) { grants_apart_ = grants; }
  // All connections end; the next Hello is answered as by a successor.
  void restart();

  // What was seen, in order: "hello", "resume", "module 1", "segment 1 4194304", "driver 1 4194304", "begin 1 blocks
  // 4", "need blocks 8", "work waits 0" (a device), "end 1", "free 1", "host 2", "release 2", "apart 0 1" (devices;
  // "alone 0 1" where it was declined).
  std::vector<std::string> log();
  size_t count(const std::string& entry);
  uint64_t declared_bytes();
  // What lies there in a device's memory, which is this process's. Read under the lock under which completions are
  // published: a sanitizer cannot follow the ring, which client and worker map at two places.
  int device_memory(const int* address);

 private:
  struct Device {
    std::unique_ptr<protocol::RingMemory> ring;
    Fd memory;
    std::vector<protocol::DeclareSegment> waiting;
    std::map<uint64_t, protocol::DeclareSegment> mapped;
    std::atomic<uint64_t> serial{0};
    std::thread worker;
    std::atomic<uint64_t> reclaims{0};  // of the header's, those that were met
    std::mutex mutex;                   // mapped
    uint64_t shown_end = 0;             // where the last record ends; the worker's
  };

  void note(const std::string& entry);
  void serve();
  void answer_held(protocol::Socket& socket);
  void serve_client(protocol::Socket& socket);
  void handle(protocol::Socket& socket, const protocol::Packet& packet);
  void open(protocol::Socket& socket, const protocol::OpenDevice& open);
  void declare(protocol::Socket& socket, const protocol::DeclareSegment& segment);
  void begin(const protocol::BeginTask& task);
  bool begin_apart(const protocol::BeginApart& tasks);
  void map(Device& device, const protocol::DeclareSegment& segment);
  void work(Device& device);
  bool reclaim_idle(Device& device);
  void execute(Device& device, const protocol::Record& record);
  void publish(Device& device, const protocol::Record& record);
  void commit_if_wanted(Device& device);

  FakeOptions options_;
  std::string path_;
  Fd listener_;
  std::thread server_;
  std::atomic<bool> stopping_{false}, held_{false}, memory_held_{false}, dropping_{false}, grants_apart_{true};
  std::atomic<uint32_t> fault_{0};
  std::map<int, std::vector<uint64_t>> unanswered_;  // requests by connection; the server thread's
  std::mutex mutex_;                                 // guards what follows
  std::vector<std::string> log_;
  Kernel kernel_;
  std::string fault_text_;
  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace heddle::client::testing
