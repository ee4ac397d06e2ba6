// What happens, and what is decided then.

#include <algorithm>

#include "simulator/eager_jobs.h"
#include "simulator/host_jobs.h"
#include "simulator/swapped_jobs.h"
#include "simulator/world.h"

namespace heddle::simulator {

void World::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kArrival:
      return arrive(event.index);
    case Event::Kind::kHostDone:
      return HostJobs(*this).done(event.index);
    case Event::Kind::kHostStep:
      return HostJobs(*this).stepped(event.version);
    case Event::Kind::kWorkDone: {
      Place& place = places_[event.index];
      if (place.version != event.version) return;  // something else has come or gone since
      const JobIndex job = place.shared.next()->job;
      if (EagerJobs::is_promotion(job)) return EagerJobs(*this).copied(EagerJobs::promoted_job(job));
      return SwappedJobs::is_copy(job) ? SwappedJobs(*this).copied(SwappedJobs::copied_job(job)) : work_done(job);
    }
    case Event::Kind::kLeaseEnds:
    case Event::Kind::kWorkerGone:
    case Event::Kind::kResumed: {
      Place& place = places_[event.index];
      const auto lease = std::find_if(place.leases.begin(), place.leases.end(),
                                      [&](const Lease& each) { return each.number == event.version; });
      if (lease == place.leases.end()) return;
      if (event.kind == Event::Kind::kLeaseEnds) return withdraw(place, *lease);
      if (event.kind == Event::Kind::kWorkerGone) return give_back(place, lease->holder);
      // Another worker has taken the lessee over: it goes on, if it still may.
      if (lease->withdrawing) return;
      jobs_[lease->holder].resumes = false;
      return go_on(lease->holder);
    }
    case Event::Kind::kDispatch: {
      Place& place = places_[event.index];
      if (place.decision != event.at) return;
      place.decision.reset();
      return told(place);
    }
    case Event::Kind::kHostWait:
      return EagerJobs(*this).waited(event.index, event.version);
    case Event::Kind::kPromoted:
      return EagerJobs(*this).resumed(event.index);
    case Event::Kind::kReturned:
      return SwappedJobs(*this).resumed(event.index);
    case Event::Kind::kAdmission:
      admission_due_ = false;
      ask_admission_ = true;
      return;
    case Event::Kind::kSchedule:
      books_changed_ = true;
      return;
  }
}

// As heddled's turn: the scheduler once about all that has changed, then each device's dispatch. What returns of memory
// is an eager job's before it is others'.
void World::decide() {
  do {
    plan();
    while (books_changed_) {
      books_changed_ = false;
      EagerJobs(*this).promote();
      for (const policy::Decision& decision : scheduler_->decisions(now_)) carry_out(decision);
      if (!SwappedJobs(*this).make_room()) EagerJobs(*this).launch();
      EagerJobs(*this).promote();
      const auto next = scheduler_->next_deadline();
      if (next && next != comes_of_age_) queue_.put({std::max(now_, *next), Event::Kind::kSchedule});
      comes_of_age_ = next;
      plan();
    }
    for (size_t i = 0; i < told_.size(); ++i) decide_leases(places_[told_[i]]);
    told_.clear();
    plan();
  } while (books_changed_ || !told_.empty());
}

// Its dispatch policy has been told something, and is to decide.
void World::told(Place& place) {
  if (place.dispatch->spans_devices()) {
    for (Place& each : places_) {
      if (!std::exchange(each.undecided, true)) told_.push_back(each.number);
    }
  }
  if (!std::exchange(place.undecided, true)) told_.push_back(place.number);
}

void World::decide_leases(Place& place) {
  while (std::exchange(place.undecided, false)) {
    for (const Lease& lease : place.leases) tell_service(place, lease.holder);
    orders_.clear();
    place.dispatch->decide(now_, orders_);
    for (const policy::LeaseOrder& order : orders_) {
      if (const auto* lent = std::get_if<policy::Lend>(&order)) {
        lend(place, *lent);
      } else {
        revoke(place, std::get<policy::Withdraw>(order));
      }
    }
  }
  place.decision = place.dispatch->next(now_);
  if (place.decision) queue_.put({*place.decision, Event::Kind::kDispatch, place.number});
}

}  // namespace heddle::simulator
