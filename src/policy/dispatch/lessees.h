#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/units.h"
#include "policy/dispatch/time_window.h"
#include "policy/lessee.h"

namespace heddle::policy {

// Bursts with a gap of at most this count as one (Gemini's merge gap, service.h): who pauses for no longer has not
// stopped working, and keeps a lease that others wait for.
inline constexpr Duration kMergeGap = std::chrono::milliseconds(2);

// Who has a device and which of them have work for it: the line that a dispatch policy picks from. Lessees of one job
// are one party; what a policy keeps of it outlives them for ten seconds, so that nobody gets rid of what he has used
// by ending a task and beginning another.
class Lessees {
 public:
  struct Job {
    Tenant tenant;
    uint64_t weight = 0;   // in thousandths, at least 1: sums of whole numbers are exact
    uint32_t lessees = 0;  // of the device
    uint32_t working = 0;  // of those, with work
    bool worked = false;   // one had work since the policy last cleared it
    double balance = 0;    // what the policy keeps of it, in nanoseconds
    TimeWindow had;        // when it had the device, where the policy goes by that
    TimePoint emptied{};   // when its last lessee left
  };
  struct Member {
    Lessee lessee;
    Job* job = nullptr;
    bool working = false;  // has work
    bool holds = false;    // was lent the device, and has not given it back
    TimePoint since{};     // when it began to wait for the lease, or its work ended

    bool waits() const { return working && !holds; }
  };

  // Nothing where the lessee is there already.
  void join(Lessee lessee, const Tenant& tenant, TimePoint now);
  void leave(Lessee lessee, TimePoint now);
  // Null where it is not there. Valid until somebody joins or leaves.
  Member* find(Lessee lessee);
  const Member* find(Lessee lessee) const { return const_cast<Lessees*>(this)->find(lessee); }

  // Both change nothing where it is so already.
  void begin_work(Member& member, TimePoint now);
  void end_work(Member& member, TimePoint now);

  // A policy that goes by `holds` says so.
  void lease_lent(Member& member);
  void lease_returned(Member& member);

  std::span<const Member> members() const { return members_; }  // by lessee
  std::map<JobId, Job>& jobs() { return jobs_; }
  size_t working() const { return working_; }            // lessees with work
  size_t waiting() const { return waiting_; }            // of those, without the lease
  size_t working_jobs() const { return working_jobs_; }  // jobs with one
  uint64_t working_weight() const { return working_weight_; }

 private:
  void count_out(Member& member);

  std::vector<Member> members_;
  std::map<JobId, Job> jobs_;  // nodes stay where they are, members point to them
  size_t working_ = 0, waiting_ = 0, working_jobs_ = 0;
  uint64_t working_weight_ = 0;
};

}  // namespace heddle::policy
