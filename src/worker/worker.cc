#include "worker/worker.h"

#include <algorithm>

#include "core/log.h"

namespace heddle::worker {
namespace {

using protocol::MessageType;

unsigned long number(uint64_t value) {
  return static_cast<unsigned long>(value);
}

bool same(const protocol::Window& a, const protocol::Window& b) {
  return a.base == b.base && a.device_bytes == b.device_bytes && a.host_bytes == b.host_bytes;
}

}  // namespace

Result<bool> Worker::handle(protocol::Packet packet) {
  Status status;
  switch (packet.type) {
    case MessageType::kQuit:
      return false;
    case MessageType::kStartWorker:
      status = start(packet);
      break;
    case MessageType::kBindSession:
      status = bind(packet);
      break;
    default:
      if (!session_)
        return fail(ErrorCode::kProtocol, "message %u before a session", static_cast<unsigned>(packet.type));
      if (packet.type == MessageType::kNextTask) binding_.task_serial = packet.as<protocol::NextTask>().task_serial;
      session_->post(std::move(packet));
  }
  if (!status) return tl::unexpected(std::move(status).error());
  return true;
}

protocol::WorkerReady Worker::ready() const {
  protocol::WorkerReady ready;
  ready.device = start_.device;
  ready.worker = start_.worker;
  ready.secret = start_.secret;
  ready.window = window_;
  ready.session = binding_.session;
  ready.task_serial = binding_.task_serial;
  ready.virtual_device = binding_.virtual_device;
  return ready;
}

Status Worker::start(const protocol::Packet& packet) {
  if (started()) return fail(ErrorCode::kProtocol, "worker %lu is started already", number(start_.worker));
  start_ = packet.as<protocol::StartWorker>();
  if (start_.version != protocol::kProtocolVersion || start_.worker == 0)
    return fail(ErrorCode::kProtocol, "heddled speaks protocol %u and starts worker %lu; this worker speaks %u",
                start_.version, number(start_.worker), protocol::kProtocolVersion);
  if (!packet.descriptors.empty()) {
    auto board = packet.descriptors[0].duplicate();
    if (!board) return tl::unexpected(std::move(board).error());
    board_ = std::move(*board);
  }
  return open_first_window();
}

// A device may want some addresses for itself: then the next window is tried.
Status Worker::open_first_window() {
  const uint32_t count = std::min(start_.window_count, protocol::kMaxWindows);
  std::string tried;
  for (uint32_t i = 0; i < count; ++i) {
    const auto taken = take_window(start_.windows[i]);
    auto opened = taken ? open_context() : taken;
    if (opened) return {};
    if (opened.error().code != ErrorCode::kLimitExceeded && taken) return opened;
    tried += "; " + opened.error().text;
  }
  return fail(ErrorCode::kLimitExceeded, "none of %u windows can be reserved%s", count, tried.c_str());
}

Status Worker::take_window(const protocol::Window& window) {
  uint64_t bytes, end;
  if (__builtin_add_overflow(window.device_bytes, window.host_bytes, &bytes) || bytes == 0 ||
      __builtin_add_overflow(window.base, bytes, &end))
    return fail(ErrorCode::kProtocol, "a window of %lu + %lu bytes at %#lx", number(window.device_bytes),
                number(window.host_bytes), number(window.base));
  addresses_.reset();
  auto reserved = reserve_addresses(window.base, Bytes{bytes});
  if (!reserved) return tl::unexpected(std::move(reserved).error());
  addresses_ = std::move(*reserved);
  window_ = window;
  return {};
}

Status Worker::open_context() {
  device::ContextOptions options;
  options.model = start_.model;
  options.window_base = window_.base;
  options.window_bytes = window_.device_bytes + window_.host_bytes;
  options.device_bytes = window_.device_bytes;
  options.host_threads = std::max(start_.host_threads, 1u);
  options.sms = start_.sms;
  options.print = [this](std::string_view text) { printer_.print(text); };
  auto context = open_(options, board_);
  if (!context) return tl::unexpected(std::move(context).error());
  context_ = std::move(*context);
  return {};
}

Status Worker::bind(const protocol::Packet& packet) {
  auto status = start_session(packet);
  if (status) return status;
  protocol::WorkerFault message{.cuda_error = kCudaUnknown};
  protocol::set_text(message.text, "cannot serve the session: " + status.error().text);
  outbox_.put(message);
  return status;
}

Status Worker::start_session(const protocol::Packet& packet) {
  if (!started() || session_ || packet.descriptors.size() != 2)
    return fail(ErrorCode::kProtocol, "worker %lu cannot be bound: it is %s", number(start_.worker),
                !started() ? "not started"
                : session_ ? "bound already"
                           : "not given a ring and its control page");
  binding_ = packet.as<protocol::BindSession>();
  if (!same(binding_.window, window_)) {
    context_.reset();
    HEDDLE_TRY(take_window(binding_.window));
    HEDDLE_TRY(open_context());
  }
  auto session = Session::start(packet.descriptors[0], packet.descriptors[1],
                                {start_.model, window_, binding_.task_serial, read_, start_.shared_faults != 0,
                                 start_.variables_stay != 0, start_.sms == 0, start_.guarded != 0},
                                *context_, printer_, outbox_);
  if (!session) return tl::unexpected(std::move(session).error());
  session_ = std::move(*session);
  logger("worker")->info("worker {} serves session {}, task {}", start_.worker, binding_.session, binding_.task_serial);
  return {};
}

}  // namespace heddle::worker
