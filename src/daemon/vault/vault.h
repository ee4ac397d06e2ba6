#pragma once

// The vault: holds descriptors and notes so that heddled can die and its successor go on. It has nothing to crash on:
// it allocates only to store, and understands no note.

#include <functional>
#include <string>
#include <vector>

#include "core/fd.h"
#include "daemon/deposits.h"
#include "daemon/spawn.h"
#include "protocol/socket.h"

namespace heddle::daemon {

struct VaultOptions {
  std::string heddled;                 // path of the program
  std::vector<std::string> arguments;  // for heddled; "--vault 3" is added
  uint32_t restarts = 5;               // at most so many a minute
};

class Vault {
 public:
  explicit Vault(VaultOptions options) : options_(std::move(options)) {}

  // Puts in what heddled must find at its first start.
  void keep(uint64_t kind, uint64_t key, std::string note, Fd descriptor) {
    deposits_.put(kind, key, std::move(note), std::move(descriptor));
  }
  // Takes over from a vault that died: `socket` leads to a running heddled, `process` is its pidfd. Returns once
  // everything came; an error means that heddled died meanwhile and what it had is lost.
  Status adopt(protocol::Socket socket, Fd process);

  // heddled deposits as soon as it has read its configuration and taken back what there was.
  void on_first_deposit(std::function<void()> call) { first_deposit_ = std::move(call); }

  // Starts heddled (unless adopted), keeps it going, and returns the exit status for the process once heddled has ended
  // on purpose or cannot be kept going.
  int run();

 private:
  enum class End { kDied, kShutDown, kLeft };

  Status open_signals();
  Status start();
  Status replay();
  End serve();
  // False at the end of the connection.
  bool take_one();
  void store(protocol::Packet packet);
  void change(protocol::Packet packet, bool more);
  void carry_out(protocol::Packet packet);
  void forward_signals();
  bool wait_for_heddled_end();
  bool may_restart();

  VaultOptions options_;
  Deposits<Fd> deposits_;
  std::vector<protocol::Packet> group_;  // changes whose last has not come yet
  protocol::Socket socket_;
  Fd heddled_;  // pidfd
  Fd signals_;
  std::function<void()> first_deposit_;
  std::vector<TimePoint> restarts_;
  bool complete_ = false, shut_down_ = false, stop_asked_ = false;
  int exit_status_ = 0;
  bool ended_by_itself_ = false;
};

}  // namespace heddle::daemon
