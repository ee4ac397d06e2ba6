#pragma once

// One end of a control connection: whole messages with descriptors beside them, over SOCK_SEQPACKET.

#include <sys/types.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/fd.h"
#include "protocol/own_messages.h"

namespace heddle::protocol {

inline constexpr size_t kMaxDescriptors = 4;
inline constexpr size_t kMaxMessageBytes = size_t{24} * 1024;

// A received message whose size is right for its type.
struct Packet {
  MessageType type;
  std::vector<std::byte> body;
  std::vector<Fd> descriptors;

  // The body as the struct of that type; call only after comparing `type`.
  template <class Message>
  Message as() const {
    Message message;
    std::memcpy(&message, body.data(), sizeof message);
    return message;
  }
};

// The size of the body of `type`; nullopt for a type that does not exist.
std::optional<size_t> body_bytes(MessageType type);
// The number of the request that the packet makes, 0 where it has none; nullopt for types that have no answer.
std::optional<uint64_t> request_of(const Packet& packet);
// The number of the request that the packet answers; nullopt for types that answer none.
std::optional<uint64_t> answered_by(const Packet& packet);

struct PeerCredentials {
  pid_t pid;
  uid_t uid;
  gid_t gid;
};

// Not thread-safe: one thread sends, one receives, at most.
class Socket {
 public:
  Socket() = default;
  explicit Socket(Fd fd) : fd_(std::move(fd)) {}

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }
  // Moves it above the process's other descriptors. A process that is killed closes the highest first, and those of a
  // GPU take their time: so the other end learns of it first of all. Stays where it is if there is no space.
  void move_to_top();

  // Sends one message. Descriptors are lent, not given. kPeerDied when the other end is gone; on a non-blocking
  // socket whose queue is full, kLimitExceeded and nothing was sent.
  template <class Message>
  Status send(const Message& message, std::span<const int> descriptors = {}) {
    return send_raw(Message::kType, &message, sizeof message, descriptors);
  }
  // The next message; nullopt when a non-blocking socket has none. kPeerDied at the end of the connection, kProtocol
  // for anything malformed.
  Result<std::optional<Packet>> receive();
  // The same, waiting up to `timeout` for it (forever where negative); nullopt when none came.
  Result<std::optional<Packet>> receive_within(Duration timeout);
  // Waits for the next message up to `timeout` (forever where negative) and insists on type `Message`. A kRefused
  // instead becomes an error with its text.
  template <class Message>
  Result<Message> expect(Duration timeout, std::vector<Fd>* descriptors = nullptr) {
    auto packet = expect_type(Message::kType, timeout);
    if (!packet) return tl::unexpected(std::move(packet).error());
    if (descriptors) *descriptors = std::move(packet->descriptors);
    return packet->template as<Message>();
  }

  // Who is at the other end, as the kernel recorded it at connect (or socketpair).
  Result<PeerCredentials> peer() const;
  // A pidfd of that process; it stays that process even after its number is used again.
  Result<Fd> peer_pidfd() const;

 private:
  Status send_raw(MessageType type, const void* body, size_t bytes, std::span<const int> descriptors);
  Result<Packet> expect_type(MessageType type, Duration timeout);

  Fd fd_;
};

Result<std::pair<Socket, Socket>> socket_pair();
Result<Socket> connect_to(const std::string& path);
// Listens at `path` with mode `mode`; replaces a stale socket file that nobody listens at.
Result<Fd> listen_at(const std::string& path, mode_t mode);
Status set_nonblocking(const Socket& socket);

// Copies `text` into a fixed field of a message, cut where it does not fit, always terminated.
template <size_t N>
void set_text(char (&field)[N], std::string_view text) {
  const size_t length = text.size() < N - 1 ? text.size() : N - 1;
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}
// The other direction, safe against a peer that left out the terminator.
template <size_t N>
std::string get_text(const char (&field)[N]) {
  return std::string(field, ::strnlen(field, N));
}

}  // namespace heddle::protocol
