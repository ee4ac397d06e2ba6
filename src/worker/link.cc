#include "worker/link.h"

#include <poll.h>

#include <algorithm>
#include <thread>

#include "core/clock.h"
#include "core/log.h"

namespace heddle::worker {
namespace {

constexpr Duration kCallEvery = std::chrono::milliseconds(100);
// A connection that ends sooner was no welcome: whoever answers does not want this worker.
constexpr Duration kWelcome = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(2);  // between calls that are answered like that

TimePoint now() {
  return MonotonicClock().now();
}

tl::unexpected<Error> rejected() {
  return fail(ErrorCode::kPeerDied, "heddled is back and ends every connection: it does not know this worker");
}

}  // namespace

Link::Link(protocol::Socket socket, Options options, Outbox& outbox, Worker& worker)
    : socket_(std::move(socket)), options_(std::move(options)), outbox_(outbox), worker_(worker) {
  socket_.move_to_top();
}

Status Link::run_until_warm() {
  HEDDLE_TRY(set_nonblocking(socket_));
  const auto peer = socket_.peer();
  if (!peer) return tl::unexpected(peer.error());
  owner_ = peer->uid;
  return serve(true);
}

Status Link::run() {
  if (quit_) return {};  // before it was warm
  return serve(false);
}

Status Link::serve(bool until_warm) {
  for (;;) {
    HEDDLE_TRY(poll_once());
    const bool was_started = worker_.started();
    auto state = receive_all();
    // A last word, where there is one: why the session cannot be served.
    if (state && !was_started && worker_.started()) HEDDLE_TRY(socket_.send(worker_.ready()));
    auto sent = send_all();
    if (!state && state.error().code != ErrorCode::kPeerDied) return tl::unexpected(std::move(state).error());
    quit_ = state && *state == State::kQuit;
    if (quit_) return {};
    if (!state || (!sent && sent.error().code == ErrorCode::kPeerDied)) {
      HEDDLE_TRY(reconnect());
    } else if (!sent) {
      return sent;
    }
    if (until_warm && worker_.started()) return {};
  }
}

// Sleeps until there is something to receive or to send.
Status Link::poll_once() {
  pollfd ready[2] = {{socket_.get(), static_cast<short>(blocked_ ? POLLIN | POLLOUT : POLLIN), 0},
                     {outbox_.wake_fd(), POLLIN, 0}};
  if (::poll(ready, 2, -1) < 0 && errno != EINTR) return fail_errno(-1, "cannot wait for heddled");
  outbox_.acknowledge();
  return {};
}

Result<Link::State> Link::receive_all() {
  for (;;) {
    auto packet = socket_.receive();
    if (!packet) return tl::unexpected(std::move(packet).error());
    if (!*packet) return State::kOpen;
    auto goes_on = worker_.handle(std::move(**packet));
    if (!goes_on) {
      // Never to be taken for the connection's end.
      if (goes_on.error().code == ErrorCode::kPeerDied) goes_on.error().code = ErrorCode::kInternal;
      return tl::unexpected(std::move(goes_on).error());
    }
    if (!*goes_on) return State::kQuit;
  }
}

Status Link::send_all() {
  auto flushed = outbox_.flush(socket_);
  blocked_ = !flushed && flushed.error().code == ErrorCode::kLimitExceeded;
  if (blocked_) return {};
  return flushed;
}

Status Link::reconnect() {
  socket_.close();
  if (options_.daemon_path.empty() || !worker_.started())
    return fail(ErrorCode::kPeerDied, "heddled is gone, and there is nowhere to call");
  const TimePoint lost = now();
  if (called_ && lost - *called_ < kWelcome) {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(2 * pause_, kLongestPause);
    if (now() >= call_until_) return rejected();
  } else {
    logger("worker")->warn("heddled is gone; calling at {} for {}", options_.daemon_path,
                           to_string(options_.reconnect_for));
    call_until_ = lost + options_.reconnect_for;
    pause_ = kCallEvery;
  }
  Status called;
  do {
    called = call();
    if (called) {
      called_ = now();
      return {};
    }
    std::this_thread::sleep_for(kCallEvery);
  } while (now() < call_until_);
  if (called.error().code == ErrorCode::kPeerDied) return rejected();  // it took the call, and ended it at once
  return fail(ErrorCode::kPeerDied, "heddled is gone and did not come back within %s: %s",
              to_string(options_.reconnect_for).c_str(), called.error().text.c_str());
}

Status Link::call() {
  auto socket = protocol::connect_to(options_.daemon_path);
  if (!socket) return tl::unexpected(std::move(socket).error());
  const auto peer = socket->peer();
  if (!peer) return tl::unexpected(peer.error());
  if (peer->uid != owner_) return fail(ErrorCode::kPermission, "user %u answers, not user %u", peer->uid, owner_);
  HEDDLE_TRY(set_nonblocking(*socket));
  HEDDLE_TRY(socket->send(worker_.ready()));
  socket_ = std::move(*socket);
  socket_.move_to_top();
  outbox_.rewind();
  outbox_.notify();
  logger("worker")->info("heddled is back");
  return {};
}

}  // namespace heddle::worker
