#include "daemon/vault_link.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace heddle::daemon {
namespace {

// heddled's loop waits this long for a vault that does not read, and starts another then. On a busy machine a healthy
// vault may not run for some time, and two vaults are worse than a pause. A new vault gets kFillPatience, to start.
constexpr Duration kPatience = std::chrono::seconds(1), kFillPatience = std::chrono::seconds(2);
constexpr Duration kRestorePatience = std::chrono::seconds(10);
constexpr Duration kRetry = std::chrono::seconds(1);

Status limit_sends(const protocol::Socket& socket, Duration patience) {
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(patience).count();
  const timeval limit{microseconds / 1'000'000, microseconds % 1'000'000};
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
    return fail_errno(-1, "cannot limit how long a send may take");
  return {};
}

Result<protocol::Packet> next_packet(protocol::Socket& socket) {
  pollfd poll_fd{socket.get(), POLLIN, 0};
  const int ready = ::poll(&poll_fd, 1, static_cast<int>(kRestorePatience / std::chrono::milliseconds(1)));
  if (ready <= 0)
    return fail(ErrorCode::kTimeout, "the vault gave nothing back within %s", to_string(kRestorePatience).c_str());
  auto packet = socket.receive();
  if (!packet) return tl::unexpected(std::move(packet).error());
  if (!*packet) return fail(ErrorCode::kTimeout, "the vault gave nothing back");
  return std::move(**packet);
}

RestoredItem item_of(protocol::Packet packet) {
  const auto restored = packet.as<protocol::Restored>();
  const size_t length = std::min<size_t>(restored.note_bytes, protocol::kMaxNoteBytes);
  RestoredItem item{static_cast<NoteKind>(restored.kind), restored.key, std::string(restored.note, length), {}};
  if (!packet.descriptors.empty()) item.descriptor = std::move(packet.descriptors.front());
  return item;
}

}  // namespace

VaultLink::VaultLink(EventLoop& loop, StartVault start, std::shared_ptr<spdlog::logger> log)
    : loop_(loop), start_(std::move(start)), log_(std::move(log)) {
  loop_.set_commit([this] { commit(); });
}

Result<std::vector<RestoredItem>> VaultLink::open(protocol::Socket socket) {
  socket_ = std::move(socket);
  HEDDLE_TRY(limit_sends(socket_, kPatience));
  std::vector<RestoredItem> items;
  for (;;) {
    auto packet = next_packet(socket_);
    if (!packet) return tl::unexpected(std::move(packet).error());
    if (packet->type == protocol::MessageType::kAllRestored) break;
    if (packet->type != protocol::MessageType::kRestored)
      return fail(ErrorCode::kProtocol, "the vault sent message %u", static_cast<unsigned>(packet->type));
    items.push_back(item_of(std::move(*packet)));
  }
  for (const RestoredItem& item : items)
    mirror_.put(static_cast<uint64_t>(item.kind), item.key, item.note, item.descriptor.get());
  HEDDLE_TRY(watch_end());
  return items;
}

void VaultLink::deposit(NoteKind kind, uint64_t key, const std::string& note, int descriptor) {
  mirror_.put(static_cast<uint64_t>(kind), key, note, descriptor);
  changed(kind, key);
}

void VaultLink::withdraw(NoteKind kind, uint64_t key) {
  mirror_.take_away(static_cast<uint64_t>(kind), key);
  changed(kind, key);
}

void VaultLink::changed(NoteKind kind, uint64_t key) {
  const std::pair<uint64_t, uint64_t> id(static_cast<uint64_t>(kind), key);
  if (is_changed_.insert(id).second) changed_.push_back(id);
}

void VaultLink::commit() {
  if (changed_.empty()) return;
  is_changed_.clear();
  const auto group = std::exchange(changed_, {});
  for (size_t i = 0; i < group.size(); ++i) {
    if (!socket_) return;  // the next vault gets everything
    const Status sent = send_change(group[i].first, group[i].second, i + 1 < group.size());
    if (!sent) return lost(sent.error().text);
  }
}

Status VaultLink::send_change(uint64_t kind, uint64_t key, bool more) {
  const Item* item = mirror_.find(kind, key);
  return item ? send_deposit(*item, more) : send(protocol::Withdraw{kind, key, more}, -1);
}

void VaultLink::shut_down() {
  closing_ = true;
  watch_.reset();
  retry_.reset();
  if (socket_) (void)send(protocol::Shutdown{}, -1);  // a vault that is gone has ended already
  socket_.close();
}

template <class Message>
Status VaultLink::send(const Message& message, int descriptor) {
  const int lent[] = {descriptor};
  return socket_.send(message, std::span(lent, descriptor >= 0 ? 1 : 0));
}

Status VaultLink::send_deposit(const Item& item, bool more) {
  protocol::Deposit message;
  message.kind = item.kind;
  message.key = item.key;
  message.note_bytes = static_cast<uint32_t>(item.note.size());
  message.more = more;
  std::memcpy(message.note, item.note.data(), item.note.size());
  return send(message, item.handle);
}

Status VaultLink::watch_end() {
  auto watch = loop_.watch(socket_.get(), EPOLLIN, [this](uint32_t) { lost("it closed its end"); });
  if (!watch) return tl::unexpected(std::move(watch).error());
  watch_ = std::move(*watch);
  return {};
}

void VaultLink::lost(const std::string& why) {
  if (closing_ || !socket_) return;
  log_->warn("the vault is gone ({}): starting another", why);
  watch_.reset();
  socket_.close();
  replace();
}

void VaultLink::replace() {
  const auto refill = [this]() -> Status {
    auto socket = start_();
    if (!socket) return tl::unexpected(std::move(socket).error());
    socket_ = std::move(*socket);
    HEDDLE_TRY(limit_sends(socket_, kFillPatience));
    for (const auto& item : mirror_.items()) HEDDLE_TRY(send_deposit(item, false));
    HEDDLE_TRY(send(protocol::AllRestored{}, -1));
    HEDDLE_TRY(limit_sends(socket_, kPatience));
    return watch_end();
  };
  if (const Status filled = refill(); !filled) {
    log_->error("cannot start a vault: {}; until there is one, a crash of heddled loses every session",
                filled.error().text);
    socket_.close();
    retry_ = loop_.after(kRetry, [this] { replace(); });
    return;
  }
  ++replacements_;
  log_->info("a new vault holds {} deposits", mirror_.items().size());
}

}  // namespace heddle::daemon
