#pragma once

#include <map>

#include "core/ids.h"
#include "core/units.h"

namespace heddle::policy {

// What the running tasks of each user hold of all devices, against the most that a user may: so that nobody can lock
// out a whole node. What waits does not count.
class UserMemory {
 public:
  // `most` of 0: no limit.
  explicit UserMemory(Bytes most) : most_(most) {}

  void open(SessionId session, UserId user);
  // All that it held is given back.
  void close(SessionId session);
  void take(SessionId session, Bytes amount);
  void give_back(SessionId session, Bytes amount);

  Bytes most() const { return most_; }
  Bytes held(SessionId session) const;  // by all programs of the session's user
  // Whether so much more would be more than the user may hold.
  bool over(SessionId session, Bytes more) const { return most_.value != 0 && held(session) + more > most_; }

 private:
  struct Session {
    UserId user;
    Bytes held;
  };
  struct User {
    Bytes held;
    uint32_t sessions = 0;
  };
  const Bytes most_;
  std::map<SessionId, Session> sessions_;
  std::map<UserId, User> users_;
};

}  // namespace heddle::policy
