#pragma once

#include <map>

#include "core/result.h"
#include "policy/group_sums.h"

namespace heddle::policy {

// What each job may have live at once, over all its sessions. Live is what its running tasks hold and what it waits
// for, so that asking for more never succeeds by asking in small pieces.
class Budgets {
 public:
  // The job's first session sets its budget; the job is forgotten with its last one.
  void open(SessionId session, JobId job, Bytes budget);
  void close(SessionId session);

  // Counts `amount` as live; kLimitExceeded, naming budget, live and amount, where that is over the budget.
  Status claim(SessionId session, Bytes amount);
  // Counts what is there already, over the budget or not.
  void restore(SessionId session, Bytes amount) { live_.add(session, amount); }
  void give_back(SessionId session, Bytes amount) { live_.subtract(session, amount); }

  Bytes budget(SessionId session) const { return budgets_.at(live_.group(session)); }
  Bytes live(SessionId session) const { return live_.sum(session); }  // of the whole job

 private:
  GroupSums<JobId> live_;
  std::map<JobId, Bytes> budgets_;
};

}  // namespace heddle::policy
