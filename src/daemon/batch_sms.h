#pragma once

#include "daemon/mps.h"
#include "daemon/shared.h"
#include "policy/deadline/share.h"

namespace heddle::daemon {

// Where the dispatch policy leaves a part of each device's SMs to requests (policy::DispatchEntry::bounds_batch), batch
// jobs' work is kept off it: on software devices by the board, under MPS by the active thread percentage of the worker.
// A worker is given either when it is started. Such a program is told that its device has as many SMs as are batch's.

// kInvalidArgument where that is wanted and a device runs programs in time slices: who has a slice has all of its SMs.
Status check_batch_sms(const Shared& shared, const Mps& mps);

// How many of the device's SMs are batch's.
inline uint32_t batch_sms(const DispatchConfig& dispatch, const DeviceModel& model) {
  return policy::batch_sms_of(model.sms, dispatch.batch_sms);
}

// Whether the session's work is kept to them.
inline bool has_batch_sms(const Shared& shared, const Session& session) {
  if (!shared.config.dispatch.bounds_batch) return false;
  const Job* job = shared.registry.find_job(session.job);
  return !job || job->tenant.kind == policy::JobClass::kBatch;
}

// The kind of worker that serves it, unless it is tried outside of MPS.
inline Worker::Kind kind_for(const Shared& shared, SessionId id) {
  const Session* session = shared.registry.find_session(id);
  return session && has_batch_sms(shared, *session) ? Worker::Kind::kBatch : Worker::Kind::kWhole;
}

}  // namespace heddle::daemon
