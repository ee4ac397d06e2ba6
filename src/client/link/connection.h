#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "core/result.h"
#include "protocol/socket.h"

// One connection to heddled, over which several threads ask at once. Each request has a number, which its answer
// repeats. No thread is the connection's own: of those that wait for answers one reads, and hands the others theirs.
//
// A connection ends once, with an error that all who wait get and all who come later: kPeerDied where heddled is gone,
// kProtocol where it says what makes no sense, kPermission with its words where it refuses the connection.
//
// Thread safety: any thread. Who sends does so under a lock of its own, one at a time; receiving is the business of
// whichever thread has set `reading_`. So the socket has at most one thread that sends and one that receives, and one
// that sends to a heddled which does not read at the moment keeps nobody from reading.
namespace heddle::client {

class Connection {
 public:
  // `last_request`: of the connections before. What still comes in answer to those is passed over.
  Connection(protocol::Socket socket, uint64_t last_request)
      : socket_(std::move(socket)), first_request_(last_request + 1), last_request_(last_request) {}

  // A request that this thread waits for. Lives no longer than its connection.
  class Request {
   public:
    explicit Request(Connection& connection) : connection_(connection), number_(connection.expect(*this)) {}
    ~Request() { connection_.forget(number_); }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    uint64_t number() const { return number_; }
    // Waits for the answer, or a refusal, up to `limit` (forever where negative): then kTimeout.
    Result<protocol::Packet> wait(Duration limit) { return connection_.wait(*this, limit); }

   private:
    friend class Connection;
    Connection& connection_;
    const uint64_t number_;
    std::optional<protocol::Packet> answer_;  // guarded by the connection's lock
  };

  template <class Message>
  Status send(const Message& message, std::span<const int> descriptors = {}) {
    return socket_.send(message, descriptors);
  }
  // Takes in what has come, without waiting; where another thread reads, that one does. An error once it has ended.
  Status look();
  // Ends it from this side.
  void end(Error why);
  uint64_t last_request() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  uint64_t expect(Request& request);
  void forget(uint64_t number);
  Result<protocol::Packet> wait(Request& request, Duration limit);
  void read(Lock& lock, Duration limit);
  void take_in(Result<std::optional<protocol::Packet>> received);
  void end_locked(Error why);

  protocol::Socket socket_;
  const uint64_t first_request_;

  mutable std::mutex mutex_;  // guards what follows; innermost
  std::condition_variable changed_;
  bool reading_ = false;
  std::optional<Error> ended_;
  uint64_t last_request_;
  std::map<uint64_t, Request*> waiting_;
};

}  // namespace heddle::client
