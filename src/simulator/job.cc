#include "simulator/job.h"

#include <algorithm>
#include <utility>

namespace heddle::simulator {

policy::Tenant Job::tenant() const {
  return {JobId{session.value}, shape->weight, shape->request, shape->limit, shape->app, shape->kind, shape->slo};
}

policy::Sla& Job::sla(Outcome& outcome_of_all) const {
  return shape->kind == policy::JobClass::kUserFacing ? outcome_of_all.user_facing : outcome_of_all.batch;
}

policy::Service Job::take_service() {
  policy::Service used;
  used.busy = outcome.busy - std::exchange(busy_before, outcome.busy);
  used.copies = copied - std::exchange(copied_before, copied);
  used.bursts = std::exchange(bursts, 0);
  told_bursts = 0;
  return used;
}

void Job::begin_request(TimePoint now) {
  issued.reset();
  if (!request || shape->host > Duration::zero()) request = now;
}

void Job::end_request(Outcome& outcome_of_all, TimePoint now) {
  if (shape->kind == policy::JobClass::kUserFacing && request)
    outcome_of_all.user_facing.request_ended(now - *request, issued.value_or(now) - *request, shape->slo);
  request.reset();
}

Duration Job::committed_with(Duration done, Duration epoch) const {
  const Duration each = std::max(kernel(), Duration(1));
  const int64_t kernels = std::max<int64_t>(1, epoch / each + (epoch % each > Duration::zero() ? 1 : 0));
  if (kernels > (done - committed) / each) return committed;
  return committed + (done - committed) / (kernels * each) * (kernels * each);
}

Duration draw_busy(Job& job, uint32_t index, uint32_t seed) {
  const JobShape& shape = *job.shape;
  if (shape.busy_most <= shape.busy) return shape.busy;
  uint64_t mixed = (uint64_t{seed} << 32 | index) + 0x9e3779b97f4a7c15 * ++job.draws;
  for (const uint64_t factor : {0xbf58476d1ce4e5b9, 0x94d049bb133111eb}) mixed = (mixed ^ mixed >> 30) * factor;
  const double part = double((mixed ^ mixed >> 31) >> 11) / double(1ull << 53);
  return shape.busy + Duration(static_cast<int64_t>(part * double((shape.busy_most - shape.busy).count())));
}

}  // namespace heddle::simulator
