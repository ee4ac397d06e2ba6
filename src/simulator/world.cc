#include "simulator/world.h"

#include <algorithm>
#include <cmath>

#include "policy/dispatch/table.h"
#include "policy/placement/table.h"
#include "policy/record/recorded_dispatch.h"

namespace heddle::simulator {
namespace {

constexpr Duration kLatestArrival = std::chrono::hours(24 * 365 * 100);  // the clock goes on for 192 years more

// When the jobs of a line arrive. Drawn by hand: the standard's distributions differ from library to library.
// kInvalidArgument: one would arrive after kLatestArrival.
Result<std::vector<TimePoint>> arrivals_of(const JobLine& line, std::mt19937_64& random) {
  std::vector<TimePoint> arrivals;
  Duration at = line.start;
  for (uint32_t i = 0; i < line.count; ++i) {
    if (at > kLatestArrival)
      return fail(ErrorCode::kInvalidArgument,
                  "job '%s': number %u of %u would arrive after more than 100 years; take a smaller start, every (%s) "
                  "or count",
                  line.shape.name.c_str(), i + 1, line.count, to_string(line.every).c_str());
    arrivals.push_back(TimePoint{at});
    const double part = double(random() >> 11) / double(1ull << 53);
    const double gap = (line.random ? -std::log(1 - part) : 1) * double(line.every.count());
    at += gap < double(kLatestArrival.count()) ? Duration(static_cast<int64_t>(gap)) : kLatestArrival;
  }
  return arrivals;
}

}  // namespace

Result<Outcome> World::run(const Scenario& scenario, InputLog* log, Timeline* timeline) {
  World world(scenario, timeline);
  HEDDLE_TRY(world.build(log));
  return world.play();
}

World::Lease* World::Place::lease_of(JobIndex job) {
  const auto found =
      std::find_if(leases.begin(), leases.end(), [&](const Lease& lease) { return lease.holder == job; });
  return found == leases.end() ? nullptr : &*found;
}

Status World::build(InputLog* log) {
  auto placement = policy::make_placement(scenario_.policy);
  if (!placement) return tl::unexpected(std::move(placement).error());
  for (const DeviceModel& model : scenario_.devices) places_.emplace_back(static_cast<uint32_t>(places_.size()), model);
  specs_ = policy::specs_of(scenario_.devices);
  HEDDLE_TRY(build_dispatch(log));
  gates_ = deadlines_ && !(*placement)->memory_oblivious();
  const bool binds_jobs = (*placement)->scope() == policy::Scope::kSession;
  scheduler_.emplace(scenario_.policy, std::move(*placement), specs_,
                     policy::Options{.age_limit = scenario_.age_limit,
                                     .gate = gates_ ? deadlines_.get() : nullptr,
                                     .swaps = scenario_.swap.host.value > 0},
                     log);
  if (scenario_.workers.automatic) begin_admission(binds_jobs);
  std::mt19937_64 random(scenario_.seed);
  for (size_t line = 0; line < scenario_.jobs.size(); ++line) {
    const JobShape& shape = scenario_.jobs[line].shape;
    const auto has_model = [&](const DeviceModel& each) { return shape.model == each.model; };
    if (!shape.model.empty() && std::none_of(scenario_.devices.begin(), scenario_.devices.end(), has_model))
      return fail(ErrorCode::kInvalidArgument, "job '%s' asks for a %s, which no device of the scenario is",
                  shape.name.c_str(), shape.model.c_str());
    auto arrivals = arrivals_of(scenario_.jobs[line], random);
    if (!arrivals) return tl::unexpected(std::move(arrivals).error());
    for (const TimePoint at : *arrivals) {
      Job& job = jobs_.emplace_back();
      job.shape = &shape;
      job.outcome.name = shape.name;
      job.outcome.line = line;
      job.outcome.arrived = at;
    }
  }
  std::stable_sort(jobs_.begin(), jobs_.end(),
                   [](const Job& a, const Job& b) { return a.outcome.arrived < b.outcome.arrived; });
  owners_.emplace_back();  // sessions count from 1
  for (JobIndex job = 0; job < jobs_.size(); ++job)
    queue_.put({jobs_[job].outcome.arrived, Event::Kind::kArrival, job});
  return {};
}

Outcome World::play() {
  const TimePoint end = scenario_.horizon > Duration::zero() ? TimePoint{scenario_.horizon} : TimePoint::max();
  while (!queue_.empty() && queue_.next().at < end) {
    const Event event = queue_.take();
    now_ = event.at;
    handle(event);
    decide();
    if (std::exchange(ask_admission_, false)) admit();
    ++outcome_.events;
  }
  if (end != TimePoint::max()) now_ = end;
  miss_what_is_open();
  TimePoint last{};
  for (JobIndex job = 0; job < jobs_.size(); ++job) {
    Job& each = jobs_[job];
    if (each.in_burst()) {
      const Duration busy = place_of(each).shared.busy_of(job, now_);
      each.outcome.busy += busy;
      each.sla(outcome_).was_busy(busy);
      show_use(job, busy);
    }
    const bool waits = each.phase == Job::Phase::kWaiting || each.swap == Job::Swap::kWaiting;
    const bool has_device = !waits && each.has_task() && each.swap != Job::Swap::kSwapped;
    if (has_device) show_stay(job);
    each.end_asking(now_);
    if (waits) each.outcome.waited += now_ - each.waits_since;
    if (each.promotion == Job::Promotion::kCopying) each.outcome.eager.moving += now_ - each.copies_since;
    if (each.swap == Job::Swap::kOut || each.swap == Job::Swap::kIn)
      each.outcome.swap.moving += now_ - each.copies_since;
    last = std::max(last, each.outcome.ended.value_or(TimePoint{}));
    outcome_.jobs.push_back(std::move(each.outcome));
  }
  for (Place& place : places_) outcome_.busy.push_back(place.shared.busy(now_));
  outcome_.makespan = (end != TimePoint::max() ? end : last) - TimePoint{};
  return std::move(outcome_);
}

void World::show_stay(JobIndex index) {
  const Job& job = jobs_[index];
  if (timeline_) timeline_->stays.push_back({index, job.device, job.waits_since, job.granted, now_});
}

// That have just been on its device.
void World::show_use(JobIndex index, Duration busy) {
  if (timeline_ && busy > Duration::zero()) timeline_->uses.push_back({index, jobs_[index].device, now_ - busy, now_});
}

}  // namespace heddle::simulator
