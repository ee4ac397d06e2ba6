#include "client/link/connection.h"

#include <sys/socket.h>

#include "core/clock.h"

namespace heddle::client {

using protocol::MessageType;
using protocol::Packet;

uint64_t Connection::expect(Request& request) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace(++last_request_, &request);
  return last_request_;
}

void Connection::forget(uint64_t number) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(number);
}

uint64_t Connection::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_request_;
}

Result<Packet> Connection::wait(Request& request, Duration limit) {
  const MonotonicClock clock;
  const TimePoint deadline = clock.now() + limit;
  Lock lock(mutex_);
  for (;;) {
    if (request.answer_) return std::move(*request.answer_);
    if (ended_) return tl::unexpected(*ended_);
    const Duration left = limit.count() < 0 ? limit : deadline - clock.now();
    if (limit.count() >= 0 && left.count() <= 0)
      return fail(ErrorCode::kTimeout, "no answer within %s", to_string(limit).c_str());
    if (!reading_) {
      read(lock, left);
    } else if (limit.count() < 0) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, left);
    }
  }
}

Status Connection::look() {
  Lock lock(mutex_);
  if (!ended_ && !reading_) read(lock, Duration{});
  return ended_ ? Status(tl::unexpected(*ended_)) : Status{};
}

void Connection::end(Error why) {
  const std::lock_guard lock(mutex_);
  end_locked(std::move(why));
}

// Whoever it is that reads for the others stops when it has its own answer: another one of them takes over then.
void Connection::read(Lock& lock, Duration limit) {
  reading_ = true;
  lock.unlock();
  auto received = socket_.receive_within(limit);
  lock.lock();
  reading_ = false;
  take_in(std::move(received));
  changed_.notify_all();
}

void Connection::take_in(Result<std::optional<Packet>> received) {
  if (!received) return end_locked(std::move(received).error());
  if (!*received) return;
  Packet& packet = **received;
  const auto number = protocol::answered_by(packet);
  if (!number)
    return end_locked({ErrorCode::kProtocol,
                       stringf("heddled sends message %u, which answers nothing", static_cast<unsigned>(packet.type))});
  if (*number == 0 && packet.type == MessageType::kRefused)
    return end_locked({ErrorCode::kPermission, protocol::get_text(packet.as<protocol::Refused>().text)});
  const auto asked = waiting_.find(*number);
  if (asked != waiting_.end() && !asked->second->answer_) {
    asked->second->answer_ = std::move(packet);
  } else if (*number == 0 || *number >= first_request_) {
    end_locked({ErrorCode::kProtocol,
                stringf("heddled answers request %lu, for which nobody waits", static_cast<unsigned long>(*number))});
  }
}

void Connection::end_locked(Error why) {
  if (ended_) return;
  ended_ = std::move(why);
  (void)::shutdown(socket_.get(), SHUT_RDWR);  // wakes who reads
  changed_.notify_all();
}

}  // namespace heddle::client
