#include "simulator/eager_jobs.h"

#include <algorithm>

#include "policy/eager.h"

namespace heddle::simulator {
namespace {

using MemoryPlace = Job::MemoryPlace;
using Promotion = Job::Promotion;

Bytes bytes_at(const Job& job, MemoryPlace place) {
  Bytes sum;
  for (size_t i = 0; i < job.memory.size(); ++i) {
    if (job.memory[i] == place) sum += job.shape->buffers[i].size;
  }
  return sum;
}

// What is being promoted lies there until it is copied.
Bytes bytes_on_host(const Job& job) {
  return bytes_at(job, MemoryPlace::kHost) + bytes_at(job, MemoryPlace::kPromoting);
}

std::vector<Bytes> sizes_of(const std::vector<Buffer>& buffers) {
  std::vector<Bytes> sizes;
  for (const Buffer& each : buffers) sizes.push_back(each.size);
  return sizes;
}

}  // namespace

Bytes EagerJobs::bytes_on_device(const Job& job) {
  return job.grown + (job.shape->buffers.empty() ? job.shape->memory : bytes_at(job, MemoryPlace::kDevice));
}

Duration EagerJobs::copy_time(Bytes bytes, const DeviceModel& model) {
  const double ns = double(bytes.value) / double(model.copy_bytes_per_s) * 1e9;
  constexpr double kLongest = 3e18;  // a hundred years
  return Duration(static_cast<int64_t>(std::clamp(ns, 1.0, kLongest)));
}

void EagerJobs::all_on_device(JobIndex index) {
  Job& job = world_.jobs_[index];
  std::replace(job.memory.begin(), job.memory.end(), MemoryPlace::kHost, MemoryPlace::kDevice);
  forget_where_none(job);
}

void EagerJobs::launch() {
  if (!world_.scenario_.eager_launch) return;
  while (launch_one()) {
    for (const policy::Decision& decision : world_.scheduler_->decisions(world_.now_)) world_.carry_out(decision);
  }
}

bool EagerJobs::launch_one() {
  for (const policy::EagerPlace& place : policy::Eager::could_launch(*world_.scheduler_)) {
    const JobShape& shape = *world_.jobs_[world_.tasks_.at(place.task)].shape;
    Bytes on_host = shape.memory;
    for (const size_t fits : policy::segments_that_fit(sizes_of(shape.buffers), place.most))
      on_host -= shape.buffers[fits].size;
    if (!policy::may_launch(place, shape.memory, on_host, world_.scenario_.swap.host - world_.swapped_)) continue;
    world_.scheduler_->launched_eagerly(place.task, place.device, on_host, world_.now_);
    return true;
  }
  return false;
}

void EagerJobs::granted(JobIndex index, Bytes on_host) {
  Job& job = world_.jobs_[index];
  const std::vector<Buffer>& buffers = job.shape->buffers;
  job.memory.assign(buffers.size(), MemoryPlace::kDevice);
  if (on_host.value == 0) return;
  job.memory.assign(buffers.size(), MemoryPlace::kHost);
  job.host_wait = 0;
  for (const size_t fits : policy::segments_that_fit(sizes_of(buffers), job.shape->memory - on_host))
    job.memory[fits] = MemoryPlace::kDevice;
  world_.swapped_ += on_host;
  world_.on_host_[job.session] = index;
  ++job.outcome.eager.launches;
  job.outcome.eager.on_host += on_host;
}

void EagerJobs::task_ended(JobIndex index) {
  Job& job = world_.jobs_[index];
  world_.swapped_ -= bytes_on_host(job);
  job.memory.clear();
  job.promotion = Promotion::kNone;
  forget_where_none(job);
}

void EagerJobs::forget_where_none(const Job& job) {
  if (bytes_on_host(job).value == 0) world_.on_host_.erase(job.session);
}

// The last burst's buffers go with the task.
void EagerJobs::free_unused(JobIndex index) {
  Job& job = world_.jobs_[index];
  if (!world_.scenario_.eager_free || job.bursts_left <= 1) return;
  for (size_t i = 0; i < job.memory.size(); ++i) {
    const Buffer& buffer = job.shape->buffers[i];
    if (buffer.until != job.burst_number()) continue;
    const MemoryPlace was = std::exchange(job.memory[i], MemoryPlace::kFreed);
    // To the scheduler what is being promoted is the device's already.
    if (was == MemoryPlace::kHost) {
      world_.scheduler_->host_memory_freed(job.task, buffer.size, world_.now_);
    } else {
      world_.scheduler_->memory_freed(job.task, buffer.size, world_.now_);
    }
    if (was != MemoryPlace::kDevice) world_.swapped_ -= buffer.size;
    world_.books_changed_ = true;
  }
  forget_where_none(job);
}

double EagerJobs::stretch_of(const Job& job) const {
  double touched = 0;
  for (size_t i = 0; i < job.memory.size(); ++i) {
    const Buffer& buffer = job.shape->buffers[i];
    const bool on_host = job.memory[i] == MemoryPlace::kHost || job.memory[i] == MemoryPlace::kPromoting;
    const bool used = buffer.from <= job.burst_number() && job.burst_number() <= buffer.until;
    if (on_host && used) touched += double(buffer.touched.value);
  }
  const DeviceModel& model = world_.places_[job.device.value].model;
  const double share = std::min(1.0, double(std::max<uint64_t>(1, job.warps)) / (model.sms * model.max_warps_per_sm()));
  const double bytes_per_ns = double(model.copy_bytes_per_s) * share / 1e9;
  return 1 + touched / bytes_per_ns / std::max(1.0, double(job.busy.count()));
}

void EagerJobs::promote() {
  for (const auto& [session, job] : world_.on_host_) {
    if (may_promote(job)) begin_to_promote(job);
  }
}

// Not while its worker is being terminated, or no worker serves it.
bool EagerJobs::may_promote(JobIndex index) {
  const Job& job = world_.jobs_[index];
  const World::Lease* lease = world_.place_of(job).lease_of(index);
  return !job.is_away() && !(lease && lease->terminated);
}

// The place is the job's from now on: nobody else gets it while the job comes to a cut.
void EagerJobs::begin_to_promote(JobIndex index) {
  Job& job = world_.jobs_[index];
  std::vector<size_t> on_host;
  std::vector<Bytes> sizes;
  for (size_t i = 0; i < job.memory.size(); ++i) {
    if (job.memory[i] != MemoryPlace::kHost) continue;
    on_host.push_back(i);
    sizes.push_back(job.shape->buffers[i].size);
  }
  const auto fit = policy::segments_that_fit(sizes, policy::Eager::could_promote(*world_.scheduler_, job.task));
  Bytes bytes;
  for (const size_t each : fit) bytes += sizes[each];
  if (!policy::is_worth_promoting(bytes, bytes_on_host(job))) return;
  for (const size_t each : fit) job.memory[on_host[each]] = MemoryPlace::kPromoting;
  world_.scheduler_->promoted(job.task, bytes, world_.now_);
  world_.books_changed_ = true;
  job.promotion = Promotion::kDraining;
  World::Place& place = world_.place_of(job);
  if (World::Lease* lease = place.lease_of(index)) lease->withdrawing = true;
  if (!place.shared.has(index)) return copy(index);
  place.drain(index, job, world_.scenario_.window, world_.now_);
  world_.watch(place);
}

// A burst of which nothing is left has ended, and perhaps its task.
void EagerJobs::drained(JobIndex index) {
  const Job& job = world_.jobs_[index];
  if (job.left <= Duration::zero()) world_.burst_over(index);
  if (job.promotion == Promotion::kDraining) copy(index);
}

// Of the worker's estimate, a multiple of what is read, the simulator knows the truth.
bool EagerJobs::waits_for_promotion(JobIndex index) {
  Job& job = world_.jobs_[index];
  const uint64_t burst = job.burst_number();
  if (job.memory.empty() || job.host_wait == burst) return false;
  const double stretch = stretch_of(job);
  if (stretch <= 1) return false;
  job.host_wait = burst;
  World::Place& place = world_.place_of(job);
  const double ns = (stretch - 1) * double(job.busy.count()) * place.model.slowdown;
  constexpr double kLongest = 3e18;  // a hundred years
  world_.queue_.put(
      {world_.now_ + Duration(static_cast<int64_t>(std::min(ns, kLongest))), Event::Kind::kHostWait, index, burst});
  leave_device(place, index);
  return true;
}

// Its memory may have been promoted meanwhile, or the job have left with it: then it goes on by itself, or has.
void EagerJobs::waited(JobIndex index, uint64_t burst) {
  const Job& job = world_.jobs_[index];
  const bool same = job.phase == Job::Phase::kKernels && job.burst_number() == burst;
  if (same && !job.is_away() && !world_.place_of(job).shared.has(index)) world_.want_device(index);
}

// A job that computes on the host, or whose work waits for memory, needs no lease.
void EagerJobs::leave_device(World::Place& place, JobIndex index) {
  if (!place.dispatch->exclusive()) return;
  if (world_.jobs_[index].in_burst()) {
    world_.tell_service(place, index);
    place.dispatch->drained(world_.lessee_of(index), world_.now_);
    world_.told(place);
  }
  if (place.lease_of(index)) world_.give_back(place, index);
}

void EagerJobs::copy(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  leave_device(place, index);
  const Bytes bytes = bytes_at(job, MemoryPlace::kPromoting);
  if (bytes.value == 0) return resumed(index);  // freed meanwhile
  job.promotion = Promotion::kCopying;
  job.copies_since = world_.now_;
  place.shared.add(index | kPromotion, SharedDevice::Kind::kCopy, copy_time(bytes, place.model), 1, world_.now_);
  world_.watch(place);
}

void EagerJobs::copied(JobIndex index) {
  Job& job = world_.jobs_[index];
  World::Place& place = world_.place_of(job);
  place.shared.remove(index | kPromotion, world_.now_);
  world_.watch(place);
  const Bytes bytes = bytes_at(job, MemoryPlace::kPromoting);
  std::replace(job.memory.begin(), job.memory.end(), MemoryPlace::kPromoting, MemoryPlace::kDevice);
  world_.swapped_ -= bytes;
  forget_where_none(job);
  ++job.outcome.eager.promotions;
  job.outcome.eager.promoted += bytes;
  job.outcome.eager.moving += world_.now_ - job.copies_since;
  job.promotion = Promotion::kResuming;
  world_.queue_.put({world_.now_ + world_.scenario_.revocation.resume, Event::Kind::kPromoted, index});
}

void EagerJobs::resumed(JobIndex index) {
  Job& job = world_.jobs_[index];
  job.promotion = Promotion::kNone;
  job.resumes = false;
  world_.books_changed_ = true;  // there may be place for what is still on the host
  if (job.in_burst()) world_.want_device(index);
}

}  // namespace heddle::simulator
