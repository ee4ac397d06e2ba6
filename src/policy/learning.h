#pragma once

#include "policy/placement/history.h"
#include "policy/scheduler.h"

namespace heddle::policy {

// The part of a scheduler that is about what its placement policy learns of applications from their jobs. Without state
// of its own.
class Learning {
 public:
  explicit Learning(Scheduler& scheduler) : scheduler_(scheduler) {}

  // What was known of an application before there was this scheduler: said ahead of its jobs, in the order of
  // History::known(). Policies that do not learn leave it.
  void remember(const KnownApp& app) { scheduler_.state_.remember(app); }
  // The user and system time that the session's program has used since that was said last. Say it before the session
  // closes. Never leads to a decision by itself.
  void computed(SessionId session, Duration since_last) {
    if (scheduler_.sessions_.contains(session)) scheduler_.state_.computed(session, since_last);
  }
  // Null where the policy does not learn.
  static const History* history(const Scheduler& scheduler) { return scheduler.state_.placement().history(); }

 private:
  Scheduler& scheduler_;
};

}  // namespace heddle::policy
