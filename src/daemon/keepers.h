#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ids.h"
#include "daemon/config.h"
#include "daemon/connection.h"
#include "daemon/events.h"
#include "daemon/spawn.h"

namespace heddle::daemon {

// What a process needs to see one GPU and no other: "NAME=value" each. With `beside` it sees those behind the one.
std::vector<std::string> gpu_environment(const std::string& uuid, const std::vector<std::string>& beside = {});

// The keepers of the pool's GPUs: starts them, asks them for memory and copies, and starts another where one has died.
// Nothing is lost with a keeper: the descriptors that it gave keep the memory.
//
// A running keeper answers within a millisecond (HARDWARE.md: 38 us to create a GiB, 0.3 ms to clear it), a new one
// when its context is built. Nobody waits for it: what it answers and reports is posted as MemoryAnswered, CopyAnswered
// and FreeMemoryReported. A keeper that owes an answer and says nothing for kAnswerPatience is ended; what one was
// asked that died is asked of its successor, once: memory at once, a copy when the process has gone and can write no
// more.
class Keepers {
 public:
  // `program`: heddle-keeper's path; empty where it is not installed. `output`: where its standard error goes.
  Keepers(EventLoop& loop, EventQueue& events, std::string program, int output)
      : loop_(loop), events_(events), program_(std::move(program)), output_(output) {}
  ~Keepers();
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;

  // Starts the keeper of a GPU ahead of its first use.
  Status start(DeviceId device, const std::string& uuid);
  // Asks for zeroed device memory, or for swap space next to the GPU. MemoryAnswered follows with it, or with why there
  // is none (kOutOfMemory where the GPU has no more), in the order of the requests to one GPU.
  void allocate(const MemoryRequest& request) { ask(Request{request}); }

  // A number that no other copy has had.
  uint64_t new_copy() { return ++last_copy_; }
  // All GPUs of the pool: a keeper started later sees the others behind its own, to copy from their memory.
  void set_gpus(std::vector<std::string> uuids) { gpus_ = std::move(uuids); }
  // Copies from one segment's memory to another's, by the keeper of the destination's GPU; `copy.copy` is new_copy()'s.
  // One end may be swap space of that GPU. Holds the memory until CopyAnswered follows.
  void copy(DeviceId device, const std::string& uuid, const protocol::CopyMemory& copy, const Fd& to, const Fd& from);
  // The copy need not go on. CopyAnswered follows all the same.
  void cancel(DeviceId device, uint64_t copy);
  // Memory that a keeper made and nobody can touch any more: the GPU's keeper clears it and serves it again. Nothing to
  // wait for; where the GPU has no keeper, or that ends before it has the memory, the memory is free. Sent when the
  // handlers that are running have returned, behind what they have deposited: a heddled that dies in between must not
  // leave memory to its successor that is another's by then.
  void take_back(DeviceId device, Fd memory, Bytes size);

  // Swap space that nobody uses any more: the GPU's keeper unmaps it. Sent when the handlers that are running have
  // returned, or before more memory is asked for, so that it is free by then.
  void unmap(DeviceId device, uint64_t mapping);

  // The GPU's keeper keeps so much of it ready, and gives the rest to the driver.
  void keep_at_most(DeviceId device, Bytes most);

  // The process that keeps the GPU now; 0 where there is none. For tests and for `heddle devices`.
  pid_t process(DeviceId device) const;

 private:
  struct Request {
    MemoryRequest wanted;
    bool repeated = false;
  };
  struct Copy {
    std::string uuid;
    protocol::CopyMemory message;
    Fd to, from;
    bool repeated = false;
  };
  struct Keeper {
    Child child;
    std::unique_ptr<Connection> connection;
    std::deque<Request> requests;     // without an answer yet
    std::map<uint64_t, Copy> copies;  // the same, by number
    EventLoop::Timer patience;        // for its next word, while it owes an answer
  };
  struct Returning {
    DeviceId device;
    Fd memory;
    Bytes size;
  };
  struct Unmapping {
    DeviceId device;
    uint64_t mapping;
  };
  // Killed, and not gone yet: a process that has GPU memory takes its time.
  struct Leaving {
    DeviceId device;
    Child child;
    std::map<uint64_t, Copy> copies;  // for its successor
    EventLoop::Watch watch;
  };

  Result<Keeper*> running(DeviceId device, const std::string& uuid);
  void ask(Request request);
  void answered(DeviceId device, protocol::Packet packet);
  void lost(DeviceId device, const Error& why);
  void await_answer(DeviceId device, Keeper& keeper);
  void refuse(const Request& request, Error error);
  void ask(DeviceId device, Copy copy);
  void copied(DeviceId device, Keeper& keeper, const protocol::MemoryCopied& answer);
  void repeat(DeviceId device, std::map<uint64_t, Copy> copies);
  void refuse(const Copy& copy, Error error);
  void end(DeviceId device, Keeper keeper);
  void gone(pid_t keeper);
  void send_back();
  void send_unmaps();

  EventLoop& loop_;
  EventQueue& events_;
  std::string program_;
  int output_;
  std::vector<std::string> gpus_;
  uint64_t last_copy_ = 0;
  std::map<DeviceId, Keeper> keepers_;
  std::vector<Returning> returning_;
  std::vector<Unmapping> unmapping_;
  std::list<Leaving> leaving_;
};

}  // namespace heddle::daemon
