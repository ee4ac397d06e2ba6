#pragma once

#include <map>

#include "core/ids.h"
#include "core/result.h"
#include "core/units.h"

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
  void restore(SessionId session, Bytes amount);
  void give_back(SessionId session, Bytes amount);

  Bytes budget(SessionId session) const;
  Bytes live(SessionId session) const;  // of the whole job

 private:
  struct Job {
    Bytes budget;
    Bytes live;
    uint32_t sessions = 0;
  };
  struct Session {
    JobId job;
    Bytes live;
  };
  std::map<JobId, Job> jobs_;
  std::map<SessionId, Session> sessions_;
};

}  // namespace heddle::policy
