#pragma once

#include <map>

#include "core/ids.h"
#include "core/units.h"
#include "policy/invariant.h"

namespace heddle::policy {

// Memory counted for each session and summed up over its group, which is its user or its job. A group exists while a
// session of it is open.
template <typename Group>
class GroupSums {
 public:
  void open(SessionId session, Group group) {
    sessions_[session] = {group, {}};
    ++groups_[group].sessions;
  }
  // All that was counted for the session is subtracted. Returns whether it was its group's last one.
  bool close(SessionId session) {
    const auto it = sessions_.find(session);
    require(it != sessions_.end(), "only an open session belongs to a group");
    const auto group = groups_.find(it->second.group);
    group->second.sum -= it->second.sum;
    sessions_.erase(it);
    if (--group->second.sessions > 0) return false;
    require(group->second.sum.value == 0, "nothing is counted for a group without sessions");
    groups_.erase(group);
    return true;
  }

  void add(SessionId session, Bytes amount) {
    Session& owner = sessions_.at(session);
    owner.sum += amount;
    groups_.at(owner.group).sum += amount;
  }
  void subtract(SessionId session, Bytes amount) {
    Session& owner = sessions_.at(session);
    require(amount <= owner.sum, "no more is subtracted than was counted for the session");
    owner.sum -= amount;
    groups_.at(owner.group).sum -= amount;
  }

  Group group(SessionId session) const { return sessions_.at(session).group; }
  // Of all sessions of the session's group.
  Bytes sum(SessionId session) const { return groups_.at(group(session)).sum; }

 private:
  struct Session {
    Group group;
    Bytes sum;
  };
  struct Sessions {
    Bytes sum;
    uint32_t sessions = 0;
  };
  std::map<SessionId, Session> sessions_;
  std::map<Group, Sessions> groups_;
};

}  // namespace heddle::policy
