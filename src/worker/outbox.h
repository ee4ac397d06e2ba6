#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <variant>

#include "protocol/socket.h"

namespace heddle::worker {

// What the worker has to tell heddled. Messages wait here while there is no connection, and what a heddled that died
// may have received without acting on it is said again to its successor: every message can be repeated.
// Thread-safe.
class Outbox {
 public:
  using Message =
      std::variant<protocol::SegmentFreed, protocol::TaskEnded, protocol::WorkerFault, protocol::LeaseReturned,
                   protocol::Backlog, protocol::Drained, protocol::Suspended, protocol::NeedsApart>;

  static Result<std::unique_ptr<Outbox>> create();

  // Queues a message and wakes the thread that polls wake_fd(). Of Backlog and Drained, which a program brings about as
  // often as it likes, never more than two wait one behind the other: a third takes their place.
  void put(const Message& message);
  void notify();

  // Readable after put or notify until acknowledged.
  int wake_fd() const { return wake_.get(); }
  void acknowledge();

  // Sends what is queued, in order. kLimitExceeded where the peer does not read fast enough: the rest stays.
  Status flush(protocol::Socket& socket);
  // There is a new heddled: queues again what was sent lately.
  void rewind();
  // Takes what is queued without sending it.
  std::deque<Message> take();

 private:
  explicit Outbox(Fd wake) : wake_(std::move(wake)) {}
  void remember(const Message& message);

  Fd wake_;
  std::mutex mutex_;
  std::deque<Message> queue_;
  std::deque<Message> sent_;  // the latest, oldest first
  // Of these only the last one counts, and they come often: said again behind the others.
  std::optional<Message> returned_, backlog_;
};

}  // namespace heddle::worker
