#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/deadline/family.h"
#include "policy/dispatch/dispatch.h"
#include "policy/job_admission.h"
#include "policy/record/recorded_scheduler.h"
#include "simulator/event_queue.h"
#include "simulator/job.h"
#include "simulator/shared_host.h"

namespace heddle::simulator {

// A node without processes: the scheduler and the dispatch policies that heddled runs, fed by jobs and devices that are
// only counted. Deterministic: the same scenario gives the same outcome.
class World {
 public:
  // Runs the scenario to its end. kNotFound, kInvalidArgument: there is no such policy, or a job asks for a model that
  // the scenario does not have. What the policies are told and decide goes to `log`, what is where when to `timeline`,
  // where there are such.
  static Result<Outcome> run(const Scenario& scenario, InputLog* log = nullptr, Timeline* timeline = nullptr);

 private:
  friend class EagerJobs;    // its part for jobs that have memory on the host (eager_jobs.h),
  friend class SwappedJobs;  // for those that give way (swapped_jobs.h),
  friend class GrowingJobs;  // for those that ask for more memory (growing_jobs.h),
  friend class HostJobs;     // and for what jobs do on the host (host_jobs.h)

  struct Lease {
    JobIndex holder;
    uint64_t number;
    TimePoint until;
    bool whole_bursts;
    bool fresh = true;                   // no burst has begun with it
    bool withdrawing = false;            // taken back, or at its end: its holder drains
    std::optional<TimePoint> revoked{};  // when it was taken back in the middle of a burst
    bool terminated = false;             // its worker was
  };
  // A device, and who holds leases of it where its dispatch is exclusive.
  struct Place {
    Place(uint32_t device, const DeviceModel& of) : number(device), model(of), shared(of) {}
    uint32_t number;  // of its device
    DeviceModel model;
    SharedDevice shared;
    std::unique_ptr<policy::Dispatch> dispatch;
    uint64_t version = 0;  // of what is on it
    uint64_t lent = 0;     // leases so far
    std::vector<Lease> leases;
    bool undecided = false;             // the dispatch policy was told something
    std::optional<TimePoint> decision;  // when it wants to be asked next

    Lease* lease_of(JobIndex job);  // null where it holds none
    // The kernel of the job that is under way ends, and so does what is in flight behind it, which `window` bounds; a
    // copy ends. Nothing follows.
    void drain(JobIndex index, const Job& job, Duration window, TimePoint now);
  };

  World(const Scenario& scenario, Timeline* timeline)
      : scenario_(scenario), timeline_(timeline), host_(scenario.processors) {}
  Status build(InputLog* log);
  Outcome play();
  void handle(const Event& event);
  void decide();
  void decide_leases(Place& place);
  void told(Place& place);

  // Jobs (world_jobs.cc).
  void arrive(JobIndex job);
  void open(JobIndex job);
  void begin_task(JobIndex job);
  void carry_out(const policy::Decision& decision);
  void end_task(JobIndex job);
  void close(JobIndex job);

  // The number of jobs (world_admission.cc).
  void begin_admission(bool binds_jobs);
  void admit();
  policy::PoolUse pool_use();

  // Bursts and leases (world_bursts.cc).
  void begin_burst(JobIndex job);
  void want_device(JobIndex job);
  void go_on(JobIndex job);
  void work_done(JobIndex job);
  void burst_over(JobIndex job);
  void lend(Place& place, const policy::Lend& order);
  void withdraw(Place& place, Lease& lease);
  void give_back(Place& place, JobIndex holder);
  void tell_service(Place& place, JobIndex job);
  void watch(Place& place);
  Place& place_of(const Job& job) { return places_[job.device.value]; }
  bool may_issue(Place& place, JobIndex job);
  policy::Lessee lessee_of(JobIndex job) const { return {jobs_[job].session, 0}; }
  JobIndex job_of(SessionId session) const { return owners_[session.value]; }

  // Classes, and leases taken back by force (world_deadlines.cc).
  Status build_dispatch(InputLog* log);
  void wait_for_device(JobIndex job);
  void miss_what_is_open();
  void plan();
  void revoke(Place& place, const policy::Withdraw& order);
  void terminate(Place& place, Lease& lease);

  void show_stay(JobIndex job);
  void show_use(JobIndex job, Duration busy);

  const Scenario& scenario_;
  Timeline* const timeline_;  // null: nobody looks
  TimePoint now_{};
  EventQueue queue_;
  SharedHost host_;
  std::optional<policy::RecordedScheduler> scheduler_;
  std::vector<policy::DeviceSpec> specs_;
  std::vector<Place> places_;
  std::unique_ptr<policy::DeadlineFamily> deadlines_;  // where the dispatch policy has any
  bool gates_ = false;                                 // it has a say in where tasks go
  bool bounds_batch_ = false;                          // batch jobs are kept to a part of the SMs
  std::vector<Job> jobs_;
  std::vector<JobIndex> owners_;  // by session
  std::unordered_map<TaskId, JobIndex> tasks_;
  std::deque<JobIndex> line_;  // arrived, while enough others run
  uint32_t open_ = 0;
  std::optional<policy::JobAdmission> admission_;       // where the number of workers is auto
  bool ask_admission_ = false, admission_due_ = false;  // it is asked at the end of this event; an event will ask
  policy::PoolUse use_;                                 // but for what tasks were busy
  uint64_t last_task_ = 0;
  bool books_changed_ = false;
  std::optional<TimePoint> comes_of_age_;  // the next request
  std::vector<uint32_t> told_;             // places whose dispatch is to decide
  std::vector<policy::LeaseOrder> orders_;
  std::map<SessionId, JobIndex> on_host_;  // jobs that have memory on the host
  Bytes swapped_;                          // all that lies in swap space, or is on its way there
  uint32_t leaving_ = 0;                   // jobs whose memory is
  TimePoint next_look_{};                  // for idle jobs
  std::optional<TimePoint> alarm_;         // an event will make it
  Outcome outcome_;
};

}  // namespace heddle::simulator
