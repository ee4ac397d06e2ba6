#pragma once

#include <map>

#include "policy/dispatch/dispatch.h"
#include "policy/dispatch/lessees.h"
#include "policy/dispatch/recent_peak.h"

namespace heddle::policy {

// Token-based time sharing (Gemini: papers/gemini.txt and the constants of the authors' published program). A job has
// `request` and `limit`, fractions of the device's time: the first is what it gets while it has work, the second what
// it never exceeds, though nobody else wants the device. Who has the token may issue until its quota is over.
//
// The promise, to any number of programs: first, who has work and nothing of the device for a window is next, those
// that have waited longer before it, so that nobody within his limit waits for more than about two windows and what
// drains, and about one as a rule. Second, requests of up to 19/20 of the device in sum are held in each window; so far
// as bursts and kernels are not longer than tokens.
//
//   usage     what the job had in the last W = min(10 s, time since the start); overlapping tokens count by parts
//   missing   request * W - usage;   remaining = limit * W - usage
//   who       the first in line if its job had nothing in the window; else, of those with something remaining, first
//             those with something missing, by how much of their request; then by least usage
//   quota     250 ms where no burst was seen; else, each time, the mean of the last quota and the longest merged burst
//             of the last seconds (pauses up to 2 ms are part of it), at least 100 ms, at most limit * 10 s
//   bursts    one that would not end within the quota is not begun (Lend::whole_bursts)
//
// The article says what it takes into account and has no formula; all of these are the program's. Where the two leave
// it open or differ, we chose:
// - After the end of a quota the published scheduler lends to the next at once, beside a kernel that still runs. Here
//   the next waits for the drain, so that shares are exact; `token:overlap` does as published.
// - A token is not longer than what remains, nor, while others have work, than what is missing; but at least 50 ms (250
//   while nobody with work requests anything) and one single burst. The published scheduler gives whole quotas: it
//   exceeds a limit by up to one in a window, gives those with small requests more than these, since who is a little
//   behind gets as much as who is far behind, and has the others wait for up to 10 s.
// - Where so many have work that these 50 or 250 ms do not fit into a window for each, they are less: what the job
//   requests of the window, or its equal part of what nobody requests, which is a twentieth at least; where nobody with
//   work requests anything, the window by their number.
// - "In the case a POD exceeded its quota, the token will be revoked": that is, nothing remains. Kernels in flight are
//   not interrupted, their time counts.
// - A holder without work for 2 ms gives the token back if others wait or its limit is below 1, and the time
//   without work at the end does not count; the published client keeps it until the quota is over.
// - Bursts are those that are seen here, from event to event, while their lessee has the token: what a worker says of
//   them would let who waits long have long tokens, and who lies. The program doubles a burst where no pause was longer
//   than 2 ms; here it is as long as its token then.
// - request, limit and usage are a job's: its lessees share them, and its usage outlives them for the window. Quotas
//   are a lessee's. A new job has used nothing: who runs short jobs one after the other, each of them a job of its own,
//   is each time one who had nothing. Simulated, jobs of 0.3 s that request 30 % have 55 % beside one that requests
//   60 %. To count what their predecessors had, a Tenant would have to say which user's job it is. Its app alone does
//   not do: a user names it as he likes, and could have what he uses counted against others.
class Token : public Dispatch {
 public:
  explicit Token(bool overlap = false) : overlap_(overlap) {}
  void joined(Lessee lessee, const Tenant& tenant, TimePoint now) override;
  void left(Lessee lessee, TimePoint now) override;
  void pending(Lessee lessee, TimePoint now) override;
  void drained(Lessee lessee, TimePoint now) override;
  void served(Lessee /*lessee*/, const Service& /*since_last*/, TimePoint /*now*/) override {}
  void returned(Lessee lessee, TimePoint now) override;
  void decide(TimePoint now, std::vector<LeaseOrder>& out) override;
  std::optional<TimePoint> next(TimePoint now) const override;

 private:
  struct Quota {
    Duration last;                // as lent last, before what remained cut it
    Duration single{}, merged{};  // of the present burst, under the present token
    RecentPeak longest, longest_merged;
  };
  struct Holder {
    Lessee lessee;
    TimePoint until;
    TimePoint counted;  // its job's usage is, up to here
    bool withdrawn = false;
  };
  struct Standing {
    double usage = 0, remaining = 0, missing = 0;
    double part_missing = 0;  // of what it requests
  };

  const Holder* find(Lessee lessee) const;
  bool waits(const Lessees::Member& member) const { return member.working && !find(member.lessee); }
  bool anybody_waits() const;
  // The holder who may still issue, if one may.
  const Holder* current(TimePoint now) const;
  Quota& quota_of(Lessee lessee);
  void count(Holder& holder, TimePoint now);
  void count_all(TimePoint now);
  void release(Lessee lessee, TimePoint now);

  Duration elapsed(TimePoint now) const;
  Standing standing(Lessees::Job& job, TimePoint now) const;
  const Lessees::Member* choose(TimePoint now) const;
  TimePoint something_remains(Lessees::Job& job, TimePoint now) const;
  std::optional<TimePoint> gives_way(const Holder& holder) const;
  Duration least_due(const Lessees::Job& job) const;
  Lend lend(const Lessees::Member& member, TimePoint now);

  const bool overlap_;
  Lessees lessees_;
  std::map<Lessee, Quota> quotas_;
  std::vector<Holder> holders_;     // without overlap at most one
  std::optional<TimePoint> start_;  // when somebody had work for the first time
};

}  // namespace heddle::policy
