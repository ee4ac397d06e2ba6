#pragma once

#include <array>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "device/software/block_queue.h"
#include "device/software/completion_queue.h"
#include "device/software/libraries/libraries.h"
#include "device/software/memory.h"
#include "device/software/pacer.h"
#include "device/software/streams.h"

// Runs the operations of one context: takes them in, starts them when their streams allow, and hands out completions.
//
// One lock guards all state; operations that take long run outside of it: blocks of kernels on `host_threads` threads,
// large copies and fills on one thread for each direction, library calls on one more. Everything else happens at once
// in the thread that made it possible, so that a mark on an idle stream has completed before submit() returns. Where
// the device keeps a pace, one more thread sleeps until the next block or copy is to end.
//
// A fault is sticky: everything that has not completed completes with its code when its turn comes, without running, as
// does everything that is handed over later. An operation that is in the hands of a thread completes only when the
// thread has let go of it, so that no memory is touched after the completion.
namespace heddle::software {

class Engine {
 public:
  struct Setting {
    DeviceModel model;
    uint32_t host_threads = 1;
  };
  // `memory`, `libraries` and `completions` outlive the engine. `pacer`: null where the device keeps no pace. Fails if
  // the board has no space for one more context.
  static Result<std::unique_ptr<Engine>> start(const Setting& setting, const DeviceMemory& memory,
                                               const Libraries& libraries, CompletionQueue& completions,
                                               std::unique_ptr<Pacer> pacer);
  // Stops everything where it is. Nothing completes any more.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Status create_stream(device::StreamIndex index, bool non_blocking, int priority);
  Status destroy_stream(device::StreamIndex index);
  // kNotFound: no such stream.
  Status submit(device::StreamIndex index, std::unique_ptr<Operation> operation);
  // Lets the stream that arrived at this hold go on. kNotFound: no such hold.
  Status release(device::Tag hold);

 private:
  Engine(const Setting& setting, const DeviceMemory& memory, const Libraries& libraries, CompletionQueue& completions,
         std::unique_ptr<Pacer> pacer);

  // What takes long beside blocks of kernels runs on these.
  enum CopyThread : size_t { kTowardsDevice, kFromDevice, kLibraryCalls, kCopyThreads };
  struct CopyLane {
    std::deque<Operation*> queue;
    std::condition_variable changed;
    std::thread thread;
  };

  // All with the lock held.
  // Starts what may start and ends what is due, until nothing changes any more.
  void advance();
  bool pace();
  void start(Operation& operation);
  void start_transfer(Operation& operation, CopyThread thread, uint64_t bytes);
  void end_transfer(Operation& operation, std::optional<Problem> problem, TimePoint began, TimePoint ended);
  void start_launch(Operation& operation);
  void end_run(BlockRun run, BlockRun::Outcome outcome, TimePoint now);
  void finish_if_done(Grid& grid, TimePoint now);
  void finish(Operation& operation, TimePoint ended);
  void report(Operation& operation);
  void let_go(Operation& hold);
  void fault(Operation& operation, uint32_t cuda_error, std::string text);
  void fail_everything(uint32_t cuda_error);
  void lose_pacer(const Error& error);

  void compute_loop();
  void copy_loop(CopyLane& lane);
  void pace_loop(std::promise<Status>& attached);
  std::optional<Problem> perform(const Operation& operation) const;
  std::optional<std::string> transfer(const Operation& operation) const;

  const Setting setting_;
  const DeviceMemory& memory_;
  const Libraries& libraries_;
  CompletionQueue& completions_;

  std::mutex mutex_;
  std::condition_variable blocks_changed_;
  StreamTable streams_;
  BlockQueue blocks_;
  std::vector<Operation*> launches_;  // running
  std::unordered_map<device::Tag, Operation*> holds_;
  std::unique_ptr<Pacer> pacer_;
  bool pacer_lost_ = false;        // the board is out of order
  bool pace_due_ = false;          // the pacer has got something new to look at
  TimePoint pace_thread_wakes_{};  // when it will; the epoch while it is awake
  uint32_t fault_ = 0;             // CUDA's code
  bool stopping_ = false;

  std::vector<std::thread> compute_threads_;
  std::array<CopyLane, kCopyThreads> copies_;
  std::thread pace_thread_;
};

}  // namespace heddle::software
