#include "daemon/vault/vault.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>

#include "core/clock.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace heddle::daemon {
namespace {

constexpr int kEndPatienceMs = 5000;  // from the end of heddled's socket to the end of its process
constexpr Duration kMinute = std::chrono::minutes(1);

[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("heddle-vault: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputc('\n', stderr);
  va_end(arguments);
}

}  // namespace

Status Vault::adopt(protocol::Socket socket, Fd process) {
  socket_ = std::move(socket);
  heddled_ = std::move(process);
  while (!complete_) {
    if (!take_one()) return fail(ErrorCode::kPeerDied, "heddled died while it filled a new vault: what it had is lost");
  }
  return {};
}

int Vault::run() {
  // Orphaned workers become this process's children, so that somebody reaps them.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (const Status opened = open_signals(); !opened) {
    say("%s", opened.error().text.c_str());
    return 1;
  }
  for (;;) {
    if (!socket_) {
      if (const Status started = start(); !started) {
        say("%s", started.error().text.c_str());
        return 1;
      }
    }
    const End end = serve();
    group_.clear();  // heddled died in the middle of a change: it has not happened
    socket_.close();
    forward_signals();
    if (end == End::kShutDown) return exit_status_;
    if (end == End::kLeft) return 0;
    if (ended_by_itself_) return exit_status_;
    if (stop_asked_ || !may_restart()) return 1;
  }
}

Status Vault::open_signals() {
  sigset_t mask;
  ::sigemptyset(&mask);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&mask, signal);
  if (::sigprocmask(SIG_BLOCK, &mask, nullptr) != 0) return fail_errno(-1, "cannot block signals");
  signals_ = Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return fail_errno(-1, "cannot open a signalfd");
  return {};
}

Status Vault::start() {
  auto ends = protocol::socket_pair();
  if (!ends) return tl::unexpected(std::move(ends).error());
  SpawnOptions spawning;
  spawning.program = options_.heddled;
  spawning.arguments = options_.arguments;
  spawning.arguments.insert(spawning.arguments.end(), {"--vault", "3"});
  spawning.descriptors = {ends->second.get()};
  auto child = spawn(spawning);
  if (!child) return tl::unexpected(std::move(child).error());
  heddled_ = std::move(child->pidfd);
  socket_ = std::move(ends->first);
  ended_by_itself_ = false;
  ends->second.close();
  // A heddled that dies here is found by serve().
  if (Status replayed = replay(); !replayed && replayed.error().code != ErrorCode::kPeerDied) return replayed;
  return {};
}

Status Vault::replay() {
  for (const auto& item : deposits_.items()) {
    protocol::Restored message;
    message.kind = item.kind;
    message.key = item.key;
    message.note_bytes = static_cast<uint32_t>(item.note.size());
    item.note.copy(message.note, sizeof message.note);
    const int lent[] = {item.handle.get()};
    HEDDLE_TRY(socket_.send(message, std::span(lent, item.handle ? 1 : 0)));
  }
  return socket_.send(protocol::AllRestored{});
}

// Until heddled's end: what it sent before is taken in first, whatever killed it.
Vault::End Vault::serve() {
  for (;;) {
    pollfd polls[] = {{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
    if (::poll(polls, std::size(polls), -1) < 0 && errno != EINTR) return End::kLeft;
    if (polls[0].revents != 0 && !take_one()) break;
    if (polls[1].revents != 0) forward_signals();
  }
  const bool ended = wait_for_heddled_end();
  if (shut_down_) return End::kShutDown;
  if (ended) return End::kDied;
  say("heddled lives but has left this vault for another: ending");
  return End::kLeft;
}

bool Vault::take_one() {
  auto received = socket_.receive();
  if (!received && received.error().code == ErrorCode::kProtocol) {
    say("ignored: %s", received.error().text.c_str());
    return true;
  }
  if (!received) return false;
  if (*received) store(std::move(**received));
  return true;
}

void Vault::store(protocol::Packet packet) {
  using protocol::MessageType;
  if (packet.type == MessageType::kDeposit) {
    const bool more = packet.as<protocol::Deposit>().more != 0;
    change(std::move(packet), more);
  } else if (packet.type == MessageType::kWithdraw) {
    const bool more = packet.as<protocol::Withdraw>().more != 0;
    change(std::move(packet), more);
  } else if (packet.type == MessageType::kAllRestored) {
    complete_ = true;
  } else if (packet.type == MessageType::kShutdown) {
    shut_down_ = true;
  } else {
    say("ignored message %u", static_cast<unsigned>(packet.type));
  }
}

void Vault::change(protocol::Packet packet, bool more) {
  group_.push_back(std::move(packet));
  if (more) return;
  for (protocol::Packet& each : std::exchange(group_, {})) carry_out(std::move(each));
}

void Vault::carry_out(protocol::Packet packet) {
  if (packet.type == protocol::MessageType::kWithdraw) {
    const auto withdraw = packet.as<protocol::Withdraw>();
    return deposits_.take_away(withdraw.kind, withdraw.key);
  }
  const auto deposit = packet.as<protocol::Deposit>();
  const size_t length = std::min<size_t>(deposit.note_bytes, protocol::kMaxNoteBytes);
  Fd descriptor = packet.descriptors.empty() ? Fd() : std::move(packet.descriptors.front());
  deposits_.put(deposit.kind, deposit.key, std::string(deposit.note, length), std::move(descriptor));
  if (first_deposit_) std::exchange(first_deposit_, nullptr)();
}

// Passes on what asks to stop, and reaps whoever ended: heddled's status is kept, the others are orphans.
void Vault::forward_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    stop_asked_ = true;
    kill_process(heddled_, static_cast<int>(info.ssi_signo) == SIGHUP ? SIGTERM : static_cast<int>(info.ssi_signo));
  }
  siginfo_t own{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(heddled_.get()), &own, WEXITED | WNOHANG) == 0 &&
      own.si_pid != 0) {
    ended_by_itself_ = own.si_code == CLD_EXITED;
    exit_status_ = ended_by_itself_ ? own.si_status : 1;
    if (!ended_by_itself_) say("heddled was ended by signal %d", own.si_status);
  }
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// A process closes its sockets a moment before it has ended.
bool Vault::wait_for_heddled_end() {
  pollfd poll_fd{heddled_.get(), POLLIN, 0};
  int ready;
  do {
    ready = ::poll(&poll_fd, 1, kEndPatienceMs);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool Vault::may_restart() {
  const TimePoint now = MonotonicClock().now();
  std::erase_if(restarts_, [&](TimePoint at) { return now - at > kMinute; });
  if (restarts_.size() >= options_.restarts) {
    say("heddled died %zu times within a minute: giving up; its log says why", restarts_.size() + 1);
    return false;
  }
  restarts_.push_back(now);
  say("heddled died: starting it again with %zu deposits", deposits_.items().size());
  return true;
}

}  // namespace heddle::daemon
