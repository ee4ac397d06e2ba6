#pragma once

#include <functional>
#include <optional>
#include <set>
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

// heddled's end of the vault: everything that must outlive heddled goes here before anybody outside can act on it. When
// the vault dies, heddled starts another and gives it everything again.
//
// Deposits are committed in groups: the loop sends what has changed before it sleeps and before any message to a
// program or a worker. What changes several times in between is sent once. The vault takes in a group as a whole or,
// where heddled dies in the middle of sending it, not at all: a successor finds what stood before or after a change,
// never half of it. So what belongs together changes without a message in between.
//
// Sends wait for the vault, but never long: it does nothing but read. One that takes longer than kPatience counts as
// dead.
class VaultLink {
 public:
  using StartVault = std::function<Result<protocol::Socket>()>;

  // `start` starts a new vault and returns our end of its socket; it may be called at any time.
  VaultLink(EventLoop& loop, StartVault start, std::shared_ptr<spdlog::logger> log);
  ~VaultLink() { loop_.set_commit({}); }
  VaultLink(const VaultLink&) = delete;
  VaultLink& operator=(const VaultLink&) = delete;

  // Takes over the vault at `socket`: everything that it kept, in order. What is of no use any more is to be withdrawn.
  Result<std::vector<RestoredItem>> open(protocol::Socket socket);

  // Replaces what stands under (kind, key). The descriptor (-1: none) is borrowed until withdraw().
  void deposit(NoteKind kind, uint64_t key, const std::string& note, int descriptor);
  void withdraw(NoteKind kind, uint64_t key);

  // heddled ends on purpose; so does the vault.
  void shut_down();
  uint32_t replacements() const { return replacements_; }

 private:
  using Item = Deposits<int>::Item;

  template <class Message>
  Status send(const Message& message, int descriptor);
  Status send_deposit(const Item& item, bool more);
  Status send_change(uint64_t kind, uint64_t key, bool more);
  void changed(NoteKind kind, uint64_t key);
  void commit();
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
  std::vector<std::pair<uint64_t, uint64_t>> changed_;  // (kind, key), in the order of the first change
  std::set<std::pair<uint64_t, uint64_t>> is_changed_;
  uint32_t replacements_ = 0;
  bool closing_ = false;
};

}  // namespace heddle::daemon
