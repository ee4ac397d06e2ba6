#include "protocol/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace heddle::protocol {
namespace {

template <class... Messages>
std::optional<size_t> size_among(MessageType type) {
  std::optional<size_t> size;
  ((type == Messages::kType ? void(size = sizeof(Messages)) : void()), ...);
  return size;
}

template <class... Messages>
std::optional<uint64_t> number_among(const Packet& packet) {
  std::optional<uint64_t> number;
  ((packet.type == Messages::kType ? void(number = packet.as<Messages>().request) : void()), ...);
  return number;
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kLimitExceeded,
                "socket path '%s' has %zu bytes, the system allows %zu: choose a shorter one", path.c_str(),
                path.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> new_socket() {
  Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(-1, "cannot create a socket");
  return fd;
}

// Takes the descriptors out of a received message, so that none leaks whatever comes next.
std::vector<Fd> take_descriptors(msghdr& message) {
  std::vector<Fd> taken;
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

std::optional<size_t> body_bytes(MessageType type) {
  return size_among<Hello, OpenDevice, DeclareModule, DeclareSegment, BeginTask, ComputeNeed, MemoryInfo, BeginApart,
                    CopyAcross, WorkWaits, Welcome, DeviceOpened, SegmentAnswer, MemoryAnswer, ApartAnswer, CopyAnswer,
                    Refused, StartWorker, BindSession, Module, MapSegment, Proceed, NextTask, DeviceFault, Quit,
                    WorkerReady, SegmentFreed, TaskEnded, WorkerFault, LeaseReturned, Backlog, Drained, Suspend,
                    Suspended, NeedsApart, Command, Reply, Deposit, Restored, Withdraw, AllRestored, Shutdown,
                    MakeMemory, MemoryMade, MemoryLeft, CopyMemory, CancelCopy, MemoryCopied, TakeBack, KeepAtMost,
                    UnmapMemory>(type);
}

std::optional<uint64_t> request_of(const Packet& packet) {
  return number_among<OpenDevice, DeclareSegment, BeginApart, CopyAcross, MemoryInfo>(packet);
}

std::optional<uint64_t> answered_by(const Packet& packet) {
  return number_among<DeviceOpened, SegmentAnswer, ApartAnswer, CopyAnswer, MemoryAnswer, Refused>(packet);
}

Status Socket::send_raw(MessageType type, const void* body, size_t bytes, std::span<const int> descriptors) {
  MessageHeader header{type, static_cast<uint32_t>(sizeof(MessageHeader) + bytes)};
  iovec parts[2] = {{&header, sizeof header}, {const_cast<void*>(body), bytes}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {};
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN || errno == EBADF)
    return fail(ErrorCode::kPeerDied, "the other end of the connection is gone");
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
    return fail(ErrorCode::kLimitExceeded, "the other end does not read: its queue is full");
  return fail_errno(-1, "cannot send message %u", static_cast<unsigned>(type));
}

Result<std::optional<Packet>> Socket::receive() {
  alignas(MessageHeader) char buffer[kMaxMessageBytes];
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec part{buffer, sizeof buffer};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received;
  // A peer that closed with messages of ours unread leaves a reset in front of its last words: it is told once.
  bool reset = false;
  do {
    received = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true))));
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  if (received < 0 && errno != ECONNRESET) return fail_errno(-1, "cannot receive");
  if (received <= 0) return fail(ErrorCode::kPeerDied, "the other end of the connection is gone");

  Packet packet;
  packet.descriptors = take_descriptors(message);
  MessageHeader header;
  if (static_cast<size_t>(received) < sizeof header || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
    return fail(ErrorCode::kProtocol, "a message of %zd bytes is cut or too short", received);
  std::memcpy(&header, buffer, sizeof header);
  const auto expected = body_bytes(header.type);
  const size_t body = static_cast<size_t>(received) - sizeof header;
  if (!expected || *expected != body || header.bytes != static_cast<size_t>(received))
    return fail(ErrorCode::kProtocol, "message type %u with %zu bytes makes no sense",
                static_cast<unsigned>(header.type), body);
  packet.type = header.type;
  packet.body.resize(body);
  std::memcpy(packet.body.data(), buffer + sizeof header, body);
  return packet;
}

Result<std::optional<Packet>> Socket::receive_within(Duration timeout) {
  pollfd poll_fd{fd_.get(), POLLIN, 0};
  const int milliseconds =
      timeout.count() < 0 ? -1 : static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout).count());
  int ready;
  do {
    ready = ::poll(&poll_fd, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return std::nullopt;
  return receive();
}

Result<Packet> Socket::expect_type(MessageType type, Duration timeout) {
  auto received = receive_within(timeout);
  if (!received) return tl::unexpected(std::move(received).error());
  if (!*received) return fail(ErrorCode::kTimeout, "no answer within %s", to_string(timeout).c_str());
  Packet packet = std::move(**received);
  if (packet.type == MessageType::kRefused && type != MessageType::kRefused)
    return fail(ErrorCode::kPermission, "%s", get_text(packet.as<Refused>().text).c_str());
  if (packet.type != type)
    return fail(ErrorCode::kProtocol, "expected message %u, got %u", static_cast<unsigned>(type),
                static_cast<unsigned>(packet.type));
  return packet;
}

void Socket::move_to_top() {
  constexpr rlim_t kMost = 1024, kAbove = 64;  // the table of descriptors grows as far as the highest
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= kAbove) return;
  const int least = static_cast<int>(std::min(limit.rlim_cur, kMost) - kAbove);
  if (Fd moved(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, least)); moved) fd_ = std::move(moved);
}

Result<PeerCredentials> Socket::peer() const {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return fail_errno(-1, "cannot learn who is connected");
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<Fd> Socket::peer_pidfd() const {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) return Fd(pidfd);
  // Kernels before 6.5: open it by number. The peer was alive when it connected, and we hold its connection.
  auto credentials = peer();
  if (!credentials) return tl::unexpected(std::move(credentials).error());
  pidfd = static_cast<int>(::syscall(SYS_pidfd_open, credentials->pid, 0));
  if (pidfd < 0) return fail_errno(-1, "cannot open a pidfd of process %d", credentials->pid);
  ::fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  return Fd(pidfd);
}

Result<std::pair<Socket, Socket>> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno(-1, "cannot create a socket pair");
  return std::pair(Socket(Fd(ends[0])), Socket(Fd(ends[1])));
}

Result<Socket> connect_to(const std::string& path) {
  auto address = address_of(path);
  if (!address) return tl::unexpected(std::move(address).error());
  auto fd = new_socket();
  if (!fd) return tl::unexpected(std::move(fd).error());
  int connected;
  do {
    connected = ::connect(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  } while (connected != 0 && errno == EINTR);
  if (connected != 0) return fail_errno(-1, "cannot connect to '%s'", path.c_str());
  return Socket(std::move(*fd));
}

Result<Fd> listen_at(const std::string& path, mode_t mode) {
  auto address = address_of(path);
  if (!address) return tl::unexpected(std::move(address).error());
  if (connect_to(path)) return fail(ErrorCode::kLimitExceeded, "somebody listens at '%s' already", path.c_str());
  ::unlink(path.c_str());
  auto fd = new_socket();
  if (!fd) return fd;
  // The mask keeps others out between bind and chmod.
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(fd->get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  ::umask(mask);
  if (bound != 0) return fail_errno(-1, "cannot bind '%s'", path.c_str());
  if (::chmod(path.c_str(), mode) != 0) return fail_errno(-1, "cannot set the mode of '%s'", path.c_str());
  if (::listen(fd->get(), 128) != 0) return fail_errno(-1, "cannot listen at '%s'", path.c_str());
  return fd;
}

Status set_nonblocking(const Socket& socket) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return fail_errno(-1, "cannot make socket %d non-blocking", socket.get());
  return {};
}

}  // namespace heddle::protocol
