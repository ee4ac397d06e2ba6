#pragma once

#include "daemon/vault_link.h"

namespace heddle::daemon {

// Numbers for everything that needs one, unique for the life of the vault: the vault knows a limit below which all of
// them lie, moved ahead in steps so that an id costs no message.
class IdSource {
 public:
  explicit IdSource(VaultLink& vault) : vault_(vault) {}

  // After a restart: ids below `limit` may be in use.
  void restore(uint64_t limit) { next_ = limit_ = limit; }

  uint64_t next() {
    if (next_ == limit_) {
      limit_ += kStep;
      vault_.deposit(NoteKind::kIds, 0, write_note(IdsNote{limit_}), -1);
    }
    return next_++;
  }

 private:
  static constexpr uint64_t kStep = 1024;
  VaultLink& vault_;
  uint64_t next_ = 1, limit_ = 1;
};

// A number that nobody can guess.
uint64_t random_secret();

}  // namespace heddle::daemon
