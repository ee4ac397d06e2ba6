// The vault beside a heddled that this program plays itself.

#include "daemon/vault/vault.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <set>
#include <string_view>

namespace heddle::daemon {
namespace {

using protocol::Deposit;
using protocol::Withdraw;

// How the played heddled ends its second life.
enum Found { kAsExpected = 0, kSomethingElse = 3, kNoVault = 4 };

std::optional<std::set<uint64_t>> restored_keys(protocol::Socket& vault) {
  std::set<uint64_t> keys;
  for (pollfd ready{vault.get(), POLLIN, 0}; ::poll(&ready, 1, 20'000) == 1;) {
    const auto packet = vault.receive();
    if (!packet || !*packet) return {};
    if ((*packet)->type == protocol::MessageType::kAllRestored) return keys;
    keys.insert((*packet)->as<protocol::Restored>().key);
  }
  return {};
}

Deposit deposit(uint64_t key, bool more) {
  Deposit message;
  message.kind = 1;
  message.key = key;
  message.more = more;
  return message;
}

// In its first life it makes two whole changes, and dies in the middle of a third.
int play_heddled() {
  protocol::Socket vault{Fd(3)};
  const auto found = restored_keys(vault);
  if (!found) return kNoVault;
  if (found->empty()) {
    for (const Deposit& message : {deposit(1, false), deposit(2, true), deposit(3, false), deposit(4, true)})
      (void)vault.send(message);
    (void)vault.send(Withdraw{1, 1, 1});
    std::raise(SIGKILL);
  }
  (void)vault.send(protocol::Shutdown{});
  return *found == std::set<uint64_t>{1, 2, 3} ? kAsExpected : kSomethingElse;
}

TEST(Vault, TakesInAChangeAsAWholeOrNotAtAll) {
  Vault vault({"/proc/self/exe", {"--play-heddled"}, 5});
  EXPECT_EQ(vault.run(), kAsExpected);
}

}  // namespace
}  // namespace heddle::daemon

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--play-heddled") return heddle::daemon::play_heddled();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
