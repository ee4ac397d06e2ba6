#include "worker/outbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace heddle::worker {
namespace {

// More than a Unix socket queues at the default buffer size, so that nothing unread is forgotten.
constexpr size_t kRemembered = 1024;

// Whether the ring has work: of several in a row only the last counts.
bool tells_work(const Outbox::Message& message) {
  return std::holds_alternative<protocol::Backlog>(message) || std::holds_alternative<protocol::Drained>(message);
}

// A fault that is held back, until the same worker says that it is shown.
bool holds_fault_back(const Outbox::Message& message) {
  const auto* fault = std::get_if<protocol::WorkerFault>(&message);
  return fault && fault->held_back != 0;
}

}  // namespace

Result<std::unique_ptr<Outbox>> Outbox::create() {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail_errno(-1, "cannot create an event descriptor");
  return std::unique_ptr<Outbox>(new Outbox(std::move(wake)));
}

void Outbox::put(const Message& message) {
  {
    std::lock_guard lock(mutex_);
    const bool third =
        tells_work(message) && queue_.size() >= 2 && std::all_of(queue_.end() - 2, queue_.end(), tells_work);
    if (third) queue_.erase(queue_.end() - 2, queue_.end());
    queue_.push_back(message);
  }
  notify();
}

void Outbox::notify() {
  const uint64_t one = 1;
  // Fails only where the count is at its limit, and then the descriptor is readable already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void Outbox::acknowledge() {
  uint64_t count;
  [[maybe_unused]] const ssize_t taken = ::read(wake_.get(), &count, sizeof count);
}

Status Outbox::flush(protocol::Socket& socket) {
  std::lock_guard lock(mutex_);
  while (!queue_.empty()) {
    HEDDLE_TRY(std::visit([&](const auto& message) { return socket.send(message); }, queue_.front()));
    remember(queue_.front());
    queue_.pop_front();
  }
  return {};
}

void Outbox::remember(const Message& message) {
  if (std::holds_alternative<protocol::LeaseReturned>(message)) {
    returned_ = message;
    return;
  }
  if (tells_work(message)) {
    backlog_ = message;
    return;
  }
  if (std::holds_alternative<protocol::WorkerFault>(message)) std::erase_if(sent_, holds_fault_back);
  if (sent_.size() == kRemembered) sent_.pop_front();
  sent_.push_back(message);
}

void Outbox::rewind() {
  std::lock_guard lock(mutex_);
  for (auto* last : {&returned_, &backlog_}) {
    if (*last) sent_.push_back(*std::exchange(*last, std::nullopt));
  }
  queue_.insert(queue_.begin(), sent_.begin(), sent_.end());
  sent_.clear();
}

std::deque<Outbox::Message> Outbox::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(queue_, {});
}

}  // namespace heddle::worker
