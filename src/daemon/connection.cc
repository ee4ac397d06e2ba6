#include "daemon/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

namespace heddle::daemon {
namespace {

// More than a session's segments at their default limit, with its modules and replies: a peer that reads at all never
// gets there.
constexpr size_t kLongestBacklog = 16384;

}  // namespace

Status Connection::start(Handlers handlers) {
  HEDDLE_TRY(protocol::set_nonblocking(socket_));
  handlers_ = std::move(handlers);
  auto watch = loop_.watch(socket_.get(), EPOLLIN, [this](uint32_t events) { ready(events); });
  if (!watch) return tl::unexpected(std::move(watch).error());
  watch_ = std::move(*watch);
  return {};
}

void Connection::pause() {
  paused_ = true;
  want();
}

void Connection::resume() {
  paused_ = false;
  want();
}

std::optional<protocol::Packet> Connection::take() {
  if (lost_) return std::nullopt;
  auto received = socket_.receive();
  if (!received || !*received) return std::nullopt;
  return std::move(**received);
}

protocol::Socket Connection::release() {
  watch_.reset();
  lost_ = true;
  return std::move(socket_);
}

bool Connection::hung_up() const {
  pollfd poll_fd{socket_.get(), 0, 0};
  return ::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLHUP | POLLERR)) != 0;
}

// False where the message has to wait.
bool Connection::sent_or_gone(const Status& status) {
  if (status) return true;
  if (status.error().code == ErrorCode::kLimitExceeded) return false;
  // What a dead peer said last may still be unread: its end is found by reading, behind that.
  if (status.error().code != ErrorCode::kPeerDied) lose(status.error());
  return true;
}

void Connection::enqueue(std::unique_ptr<Pending> pending) {
  if (lost_) return;
  if (backlog_.size() >= kLongestBacklog)
    return lose({ErrorCode::kLimitExceeded, stringf("the peer left %zu messages unread", backlog_.size())});
  const Waiting more = pending->size();
  waiting_ = {waiting_.bytes + more.bytes, waiting_.descriptors + more.descriptors};
  backlog_.push_back(std::move(pending));
  want();
}

void Connection::ready(uint32_t events) {
  if (events & EPOLLOUT) flush();
  // One message a round: its handler may destroy this, so nothing is touched behind it.
  if (may_read() && !held_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR))) read();
}

void Connection::flush() {
  while (!backlog_.empty() && !lost_) {
    const Status status = backlog_.front()->send(socket_);
    if (!sent_or_gone(status)) break;
    if (lost_) break;
    const Waiting less = backlog_.front()->size();
    waiting_ = {waiting_.bytes - less.bytes, waiting_.descriptors - less.descriptors};
    backlog_.pop_front();
  }
  want();
}

void Connection::read() {
  if (lost_) return;
  auto received = socket_.receive();
  if (!received) return lose(std::move(received).error());
  if (*received) handlers_.packet(std::move(**received));
}

void Connection::want() {
  // A paused peer that hangs up would wake the loop without end: its end is then found by its process or at resume().
  if (paused_ && backlog_.empty()) return watch_.set_events(EPOLLET);
  watch_.set_events((may_read() ? static_cast<uint32_t>(EPOLLIN) : 0u) | (backlog_.empty() ? 0u : EPOLLOUT));
}

bool Connection::may_read() const {
  return !paused_ && waiting_.bytes <= most_.bytes && waiting_.descriptors <= most_.descriptors;
}

// Told from the loop, so that whoever is sending is not destroyed in the middle of it.
void Connection::lose(Error error) {
  if (lost_) return;
  lost_ = true;
  backlog_.clear();
  waiting_ = {};
  watch_.reset();
  loss_ = loop_.after(Duration{}, [this, error = std::move(error)] { handlers_.closed(error); });
}

}  // namespace heddle::daemon
