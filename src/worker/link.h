#pragma once

#include <optional>

#include "worker/outbox.h"
#include "worker/worker.h"

namespace heddle::worker {

// The worker's connection to heddled, served by the main thread. It outlives heddled: when the connection ends, the
// worker goes on working and calls at heddled's worker socket until a successor answers or the time is over.
class Link {
 public:
  struct Options {
    std::string daemon_path;  // where to call; empty: nowhere, the end of the connection is the end
    Duration reconnect_for = std::chrono::seconds(10);
  };

  Link(protocol::Socket socket, Options options, Outbox& outbox, Worker& worker);

  // Serves until heddled says quit (no error) or the worker cannot go on (the error says why).
  Status run();
  // The same until the worker has been started and has told heddled that it is warm.
  Status run_until_warm();

 private:
  enum class State { kOpen, kQuit };

  Status serve(bool until_warm);
  Status poll_once();
  Result<State> receive_all();
  Status send_all();
  Status reconnect();
  Status call();

  protocol::Socket socket_;
  Options options_;
  Outbox& outbox_;
  Worker& worker_;
  uid_t owner_ = 0;  // whom heddled runs as
  bool quit_ = false;
  bool blocked_ = false;  // heddled's queue is full
  // Calling: when it was answered last, until when it makes sense, and for how long a call that was answered with the
  // connection's end keeps from the next.
  std::optional<TimePoint> called_;
  TimePoint call_until_{};
  Duration pause_{};
};

}  // namespace heddle::worker
