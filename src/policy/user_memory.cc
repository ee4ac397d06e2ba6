#include "policy/user_memory.h"

#include "policy/invariant.h"

namespace heddle::policy {

void UserMemory::open(SessionId session, UserId user) {
  sessions_[session] = {user, {}};
  ++users_[user].sessions;
}

void UserMemory::close(SessionId session) {
  const auto it = sessions_.find(session);
  require(it != sessions_.end(), "only an open session has a user");
  const auto user = users_.find(it->second.user);
  user->second.held -= it->second.held;
  if (--user->second.sessions == 0) users_.erase(user);
  sessions_.erase(it);
}

void UserMemory::take(SessionId session, Bytes amount) {
  Session& owner = sessions_.at(session);
  owner.held += amount;
  users_.at(owner.user).held += amount;
}

void UserMemory::give_back(SessionId session, Bytes amount) {
  Session& owner = sessions_.at(session);
  require(amount <= owner.held, "a session gives back no more than it holds");
  owner.held -= amount;
  users_.at(owner.user).held -= amount;
}

Bytes UserMemory::held(SessionId session) const {
  return users_.at(sessions_.at(session).user).held;
}

}  // namespace heddle::policy
