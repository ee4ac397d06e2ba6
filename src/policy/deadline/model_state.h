#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "policy/deadline/request_rates.h"
#include "policy/deadline/revocation_times.h"
#include "policy/lessee.h"
#include "policy/service.h"

namespace heddle::policy {

// A batch lessee, or a request that is late, has a device for so long while others wait for it.
inline constexpr Duration kTurnLength = std::chrono::seconds(1);

// The devices of one model, who has them, who wants them, and who goes before whom: what a deadline policy decides by.
//
// A request is a burst of a user-facing lessee. It arrives with its first record, or, where the lessee has no device
// yet, when one is asked for, unless its program then lets more than the SLO pass before it begins; its deadline is its
// arrival and the SLO. Requests go by deadline. One that cannot end in time any more is late: it goes behind those that
// can, and before batch. For how long one has a device is estimated by its application. Batch lessees go by how long
// they have waited. Without classes all are batch.
class ModelState {
 public:
  struct Member {
    Lessee lessee;
    Tenant tenant;
    std::optional<DeviceId> device;        // none: it waits for one
    bool working = false;                  // has a burst
    bool fresh = false;                    // was placed late, and its first burst is to come
    bool ready = false;                    // its worker is there
    bool beside = false;                   // has the device beside its holder (share.h)
    TimePoint arrival{};                   // of its request
    TimePoint since{};                     // when it began to wait, or its work ended
    Duration attained{};                   // of its burst: busy time; for how long it had the device,
    Duration had{};                        // under leases that are back,
    std::optional<TimePoint> has_since{};  // and since when it has it now
    Duration drain{}, uncommitted{};
    bool exposed = false;

    TimePoint deadline() const { return arrival + tenant.slo; }
    void has_device(TimePoint now) { has_since = has_since.value_or(now); }
    // For how long its burst has had the device.
    Duration used(TimePoint now) const { return std::max(attained, had + (has_since ? now - *has_since : Duration{})); }
  };
  struct Place {
    DeviceId id;
    std::vector<Lessee> lessees{};
    std::optional<Lessee> holder{};
    TimePoint lent{};
    std::optional<TimePoint> withdrawn{};   // when it was taken back from its holder
    bool revoked = false;                   // for a request: it is to be taken back from its holder, or was
    bool in_hurry = false;                  // and that one can still end in time, or could
    std::optional<TimePoint> terminated{};  // when its holder's worker was
    std::optional<TimePoint> drains{};      // since when its holder's worker, which was to be terminated, cannot be
    bool reserved = false;                  // for requests, by the policy
    RevocationTimes revocations{};          // until it was free
  };

  // By id, at least one.
  // `terminates`: a place that is revoked is free after a termination, not after what is in flight.
  ModelState(const std::vector<DeviceId>& devices, bool has_classes, bool terminates);

  // A request for a device; it ends with joined(), or with waits_no_longer().
  void waits(Lessee lessee, const Tenant& tenant, TimePoint now);
  void waits_no_longer(Lessee lessee);
  // As Dispatch, of one device.
  void joined(DeviceId device, Lessee lessee, const Tenant& tenant, TimePoint now);
  void left(DeviceId device, Lessee lessee, TimePoint now);
  void pending(Lessee lessee, TimePoint now);
  void ready(Lessee lessee, TimePoint now);
  void drained(Lessee lessee, TimePoint now);
  void served(Lessee lessee, const Service& since_last);
  void returned(DeviceId device, Lessee lessee, TimePoint now);
  void not_terminated(DeviceId device, Lessee lessee, TimePoint now);
  // Another one after each event that may change what is decided.
  uint64_t version() const { return version_; }
  void lend(Place& place, const Member& to, TimePoint now);
  void lend_beside(const Member& to, TimePoint now);

  std::vector<Place>& places() { return places_; }  // by id
  const std::vector<Place>& places() const { return places_; }
  Place& place(DeviceId device);
  const Place& place(DeviceId device) const { return const_cast<ModelState*>(this)->place(device); }
  // Null where it is not there.
  const Member* find(Lessee lessee) const;
  const Member* holder_of(const Place& place) const { return place.holder ? find(*place.holder) : nullptr; }
  // Requests without a device that can still end in time, by deadline. Those that cannot, or were given up, never come
  // back.
  std::vector<const Member*> live_requests(TimePoint now);
  void give_up(const Member& request);
  const std::set<std::pair<TimePoint, Lessee>>& late_requests() const { return late_; }  // by arrival

  bool has_classes() const { return has_classes_; }
  bool is_request(const Member& member) const { return has_classes_ && member.tenant.kind == JobClass::kUserFacing; }
  Duration expected(const Member& member) const { return rates_.expected(member.tenant.app); }
  bool is_late(const Member& member, TimePoint now) const;
  bool goes_before(const Member& one, const Member& other, TimePoint now) const;
  // A batch lessee's burst has it.
  bool has_batch(const Place& place) const;
  // A request has it, or one that is there waits for it, or is about to begin.
  bool has_request(const Place& place) const;
  // Neither.
  bool is_idle(const Place& place) const;
  // Who waits for it and goes first of those that may have it; null: nobody.
  const Member* next_on(const Place& place, TimePoint now) const;
  // When the place is free for the next request, as far as that is known.
  TimePoint free_at(const Place& place, TimePoint now) const;
  const RequestRates& rates() const { return rates_; }
  // Until a place that is revoked is free: what 99 of 100 took, of the latest. That of all places together where few
  // were measured on this one, 22 ms before there are any.
  Duration revocation_time(const Place& place) const;
  // How often that was measured on the places that it is of.
  uint64_t revocations_measured(const Place& place) const;

 private:
  Member* member(Lessee lessee) { return const_cast<Member*>(find(lessee)); }
  void asks_no_more(const Member& member);
  const RevocationTimes& revocations_of(const Place& place) const;

  const bool has_classes_, terminates_;
  std::vector<Place> places_;
  std::map<Lessee, Member> members_;
  // Requests without a device: those that could still end in time when that was last looked at, and others.
  std::set<Lessee> asking_;
  std::set<std::pair<TimePoint, Lessee>> late_;
  RequestRates rates_;
  RevocationTimes revocations_;
  uint64_t version_ = 0;
};

}  // namespace heddle::policy
