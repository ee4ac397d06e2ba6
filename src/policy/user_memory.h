#pragma once

#include "policy/group_sums.h"

namespace heddle::policy {

// What the running tasks of each user hold of all devices, against the most that a user may: so that nobody can lock
// out a whole node. What waits does not count.
class UserMemory {
 public:
  // `most` of 0: no limit.
  explicit UserMemory(Bytes most) : most_(most) {}

  void open(SessionId session, UserId user) { held_.open(session, user); }
  // All that it held is given back.
  void close(SessionId session) { held_.close(session); }
  void take(SessionId session, Bytes amount) { held_.add(session, amount); }
  void give_back(SessionId session, Bytes amount) { held_.subtract(session, amount); }

  UserId user(SessionId session) const { return held_.group(session); }
  Bytes most() const { return most_; }
  Bytes held(SessionId session) const { return held_.sum(session); }  // by all programs of the session's user
  // Whether so much more would be more than the user may hold.
  bool over(SessionId session, Bytes more) const { return most_.value != 0 && held(session) + more > most_; }

 private:
  const Bytes most_;
  GroupSums<UserId> held_;
};

}  // namespace heddle::policy
