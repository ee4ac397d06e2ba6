#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/log.h"
#include "daemon/deposits.h"
#include "daemon/event_loop.h"
#include "daemon/notes.h"
#include "protocol/socket.h"

namespace heddle::daemon {

// What the vault had kept, as it came back.
struct RestoredItem {
  NoteKind kind;
  uint64_t key;
  std::string note;
  Fd descriptor;  // may be none
};

// heddled's end of the vault: everything that must outlive heddled goes here before it is used. When the vault dies,
// heddled starts another and gives it everything again.
//
// Sends wait for the vault, but never long: it does nothing but read. One that takes longer than kPatience counts as
// dead.
class VaultLink {
 public:
  using StartVault = std::function<Result<protocol::Socket>()>;

  // `start` starts a new vault and returns our end of its socket; it may be called at any time.
  VaultLink(EventLoop& loop, StartVault start, std::shared_ptr<spdlog::logger> log)
      : loop_(loop), start_(std::move(start)), log_(std::move(log)) {}

  // Takes over the vault at `socket`: everything that it kept, in order. What is of no use any more is to be withdrawn.
  Result<std::vector<RestoredItem>> open(protocol::Socket socket);

  // Replaces what stands under (kind, key). The descriptor (-1: none) is borrowed until withdraw().
  void deposit(NoteKind kind, uint64_t key, const std::string& note, int descriptor);
  void withdraw(NoteKind kind, uint64_t key);

  // heddled ends on purpose; so does the vault.
  void shut_down();
  uint32_t replacements() const { return replacements_; }

 private:
  template <class Message>
  Status send(const Message& message, int descriptor);
  Status send_deposit(uint64_t kind, uint64_t key, const std::string& note, int descriptor);
  Status watch_end();
  void lost(const std::string& why);
  void replace();

  EventLoop& loop_;
  StartVault start_;
  std::shared_ptr<spdlog::logger> log_;
  protocol::Socket socket_;
  EventLoop::Watch watch_;
  EventLoop::Timer retry_;
  Deposits<int> mirror_;
  uint32_t replacements_ = 0;
  bool closing_ = false;
};

}  // namespace heddle::daemon
