#pragma once

#include <fcntl.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "daemon/event_loop.h"
#include "protocol/socket.h"

namespace heddle::daemon {

// One peer's socket on the loop: whole messages in, messages out without ever blocking. What a slow peer does not take
// waits here, in order; a peer that lets too much wait is treated as gone. One that asks and does not read is not read
// either (`stop_behind`), so that what it has waiting here is limited: its own socket fills, and it waits.
class Connection {
 public:
  // Both may destroy the connection.
  struct Handlers {
    std::function<void(protocol::Packet)> packet;
    std::function<void(const Error&)> closed;  // at most once; nothing comes after it
  };

  // Start before anything else; an error leaves it closed, without a call of `closed`.
  Connection(EventLoop& loop, protocol::Socket socket) : loop_(loop), socket_(std::move(socket)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Status start(Handlers handlers);
  // What may wait for the peer before nothing more is read from it. For peers that only ask: one that is told things
  // unasked, and writes while it does not read, would wait for heddled, and heddled for it.
  struct Waiting {
    size_t bytes, descriptors;
  };
  void stop_behind(Waiting most) { most_ = most; }

  // Descriptors are lent. Sending to a peer that is gone does nothing: `closed` tells.
  template <class Message>
  void send(const Message& message, std::span<const int> descriptors = {}) {
    loop_.commit();
    if (backlog_.empty() && sent_or_gone(socket_.send(message, descriptors))) return;
    enqueue(std::make_unique<PendingMessage<Message>>(message, descriptors));
  }
  template <class Message>
  void send(const Message& message, const Fd& descriptor) {
    const int lent[] = {descriptor.get()};
    send(message, lent);
  }

  // Between the two a message waits to be handled: nothing more is read, so that each of a peer's messages is handled
  // before the next one is taken, and what waits is limited. Somebody must be about to handle it: the loop does not
  // sleep meanwhile.
  void hold() { held_ = true; }
  void handled() { held_ = false; }
  // Stops reading, without telling the peer, until resume().
  void pause();
  void resume();
  // The next message that is here already, past the loop; none where there is none, or none that makes sense.
  std::optional<protocol::Packet> take();
  // Gives up the socket, with what is unread.
  protocol::Socket release();
  // Whether the peer has closed its end, even if messages are left to read.
  bool hung_up() const;
  const protocol::Socket& socket() const { return socket_; }
  size_t backlog() const { return backlog_.size(); }

 private:
  struct Pending {
    virtual ~Pending() = default;
    virtual Status send(protocol::Socket& socket) = 0;
    virtual Waiting size() const = 0;
  };
  template <class Message>
  struct PendingMessage : Pending {
    PendingMessage(const Message& of, std::span<const int> lent) : message(of) {
      for (const int fd : lent) {
        Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
        complete = complete && copy;
        descriptors.push_back(std::move(copy));
      }
    }
    Status send(protocol::Socket& socket) override {
      if (!complete) return fail(ErrorCode::kLimitExceeded, "no descriptor was left to keep a message waiting");
      std::vector<int> lent;
      for (const Fd& fd : descriptors) lent.push_back(fd.get());
      return socket.send(message, lent);
    }
    Waiting size() const override { return {sizeof message, descriptors.size()}; }
    Message message;
    std::vector<Fd> descriptors;
    bool complete = true;
  };

  bool sent_or_gone(const Status& status);
  void enqueue(std::unique_ptr<Pending> pending);
  void ready(uint32_t events);
  void flush();
  void read();
  void want();
  bool may_read() const;
  void lose(Error error);

  EventLoop& loop_;
  protocol::Socket socket_;
  Handlers handlers_;
  EventLoop::Watch watch_;
  EventLoop::Timer loss_;
  std::deque<std::unique_ptr<Pending>> backlog_;
  Waiting waiting_{}, most_{SIZE_MAX, SIZE_MAX};
  bool paused_ = false, held_ = false, lost_ = false;
};

}  // namespace heddle::daemon
