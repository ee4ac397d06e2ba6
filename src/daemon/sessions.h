#pragma once

#include "daemon/host_times.h"

namespace heddle::daemon {

// The life of jobs and sessions: who may open one, what it sees, when it ends.
//
// A session ends with its process, not with its connection; a job with its last session and the connection that opened
// it.
class Sessions {
 public:
  Sessions(Shared& shared, Tasks& tasks, SegmentStore& segments)
      : shared_(shared), tasks_(tasks), segments_(segments), host_times_(shared, tasks) {}

  // A client says hello on `connection`. The session is new, or the one that it resumes; errors are for the client.
  Result<Session*> hello(const protocol::Hello& hello, Connection& connection, const protocol::PeerCredentials& peer);
  protocol::Welcome welcome(const Session& session) const;
  bool managed_on_device(const protocol::Welcome& welcome) const;
  // The client's connection is gone; the session stays.
  void disconnected(Session& session) {
    host_times_.look(session);
    session.connection = nullptr;
    session.deferred.reset();  // said again by a client that resumes
  }
  // Its device work is over, and so is the session, at once or when its executors are gone.
  void end(Session& session);
  void process_ended(SessionId id);
  // Everything it had has returned: it leaves the registry.
  void released(SessionId id);

  Result<Job*> open_job(const std::string& name, Bytes budget, const policy::Tenant& tenant,
                        const protocol::PeerCredentials& peer, Connection* opener);
  // The opener's connection is gone, or never came back after a restart.
  void abandon(JobId id);
  void cancel(Job& job);
  // Its tasks give their devices' processors up, and keep their memory, until resume. kNotSupported where one cannot,
  // kInvalidArgument where there is nothing to be done: nothing has happened.
  Status suspend(Job& job);
  // The memory of the job, which is suspended, leaves its devices now, whether others wait or not.
  void swap(Job& job);
  // Why that of one of its tasks cannot. kLimitExceeded, kNotSupported.
  Status may_swap(const Job& job);
  Status resume(Job& job);
  // A task of it could not be suspended after all: the job is not any more, and the rest of it goes on.
  void not_suspended(JobId id);
  // The memory of a task of it did not go to swap space: it is not to, until it is asked for again.
  void not_swapped(JobId id);

  // After a restart: watches the process again.
  void watch(Session& session);
  void deposit_job(const Job& job);

 private:
  Result<Session*> open(const protocol::Hello& hello, Connection& connection, const protocol::PeerCredentials& peer);
  Result<Session*> resume(const protocol::Hello& hello, Connection& connection, const protocol::PeerCredentials& peer);
  Result<Job*> job_of(const protocol::Hello& hello, const protocol::PeerCredentials& peer);
  Status check_limits(uid_t uid) const;
  void end_forerunners(pid_t pid);
  void drop_if_empty(JobId id);
  void follow(const Job& job);

  Shared& shared_;
  Tasks& tasks_;
  SegmentStore& segments_;
  HostTimes host_times_;
  JobId joined_{};  // the job that a program is about to join: it stays although it is empty
};

}  // namespace heddle::daemon
