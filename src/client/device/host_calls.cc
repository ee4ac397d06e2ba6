#include "client/device/host_calls.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace heddle::client {
namespace {

// How long a wait for another device's event may go unnoticed.
constexpr Duration kAskEvery = std::chrono::microseconds(200);
constexpr Duration kLookEvery = std::chrono::milliseconds(100);

// The program's signals are for its own threads; but a call may touch managed memory (memory/page_faults.h).
std::thread quiet_thread(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

void HostCalls::add(uint32_t stream, HostCall call) {
  {
    const std::lock_guard lock(mutex_);
    queues_[stream].push_back(std::move(call));
    if (!started_) quiet_thread([this] { serve(); }).detach();
    started_ = true;
  }
  added_.notify_one();
  protocol::ring_bell(ring_.header().to_client);  // the stream may stand there already
}

void HostCalls::serve() {
  thread_.store(static_cast<int>(::syscall(SYS_gettid)), std::memory_order_release);
  for (;;) {
    bool asks = false;
    {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [&] { return !queues_.empty(); });
      for (const auto& [stream, queue] : queues_) asks |= queue.front().ready != nullptr;
    }
    const uint32_t seen = protocol::read_bell(ring_.header().to_client);
    if (run_one()) continue;
    protocol::wait_bell(ring_.header().to_client, seen, asks ? kAskEvery : kLookEvery);
    (void)ring_.session().look();  // what it says shows in run_one, through failure()
  }
}

bool HostCalls::run_one() {
  const Done health = ring_.failure();
  HostCall call;
  uint32_t stream = 0;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [index, queue] : queues_) {
      HostCall& front = queue.front();
      const uint64_t reached = ring_.stream_slot(index).host_reached.load(std::memory_order_acquire);
      const bool stands = reached >= front.sequence && (!front.ready || front.ready());
      if (!stands && health) continue;
      call = std::move(front);
      stream = index;
      break;
    }
    if (!call.run) return false;
  }
  call.run(health ? cudaSuccess : health.error().code);
  release(stream, call.sequence);
  return true;
}

void HostCalls::release(uint32_t stream, uint64_t sequence) {
  {
    const std::lock_guard lock(mutex_);
    const auto queue = queues_.find(stream);
    queue->second.pop_front();
    if (queue->second.empty()) queues_.erase(queue);
  }
  ring_.stream_slot(stream).host_done.store(sequence, std::memory_order_release);
  protocol::ring_bell(ring_.header().to_worker);
}

}  // namespace heddle::client
