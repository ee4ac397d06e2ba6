#pragma once

#include <unordered_map>
#include <vector>

#include "policy/placement/placement.h"
#include "policy/placement/sm_map.h"

namespace heddle::policy {

// CASE section III, Alg. 2: the first device that has the task's memory free and space on its SMs for all of its blocks
// at once, dealt out round robin as hardware does. Memory and compute are both hard constraints, so fewer tasks run at
// once than under mgb-warps and each is slowed less.
//
// A grid larger than the whole device counts as what an idle device holds at once: it could never run otherwise. A task
// whose compute need grows while it runs takes what space there is; the rest is left out, as hardware queues it.
//
// Work: one look at each device of the model for memory, and one more at a closed one where no other has room; where
// that fits, the SM map's fits() (its header counts it).
class MgbSm : public Placement {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<MgbSm>(*this); }
  bool waits_alike() const override { return true; }
  Answer place(const Request& request, const Pool& pool) const override;
  void opened(const Pool& pool) override;
  void task_began(TaskId task, const ComputeNeed& need, DeviceId device, const Pool& pool) override;
  void compute_changed(TaskId task, const ComputeNeed& need, const Pool& pool) override;
  void task_ended(TaskId task) override;

 private:
  struct Dealt {
    DeviceId device;
    SmShare block;
    std::vector<SmMap::Share> shares;
  };
  bool is_kept_for_another(Request request, const Pool& pool) const;
  Dealt deal(const ComputeNeed& need, DeviceId device, const Pool& pool);

  std::vector<SmMap> maps_;      // by device
  std::vector<DeviceId> alike_;  // by device: the first device that has the same SMs, for which needs are worked out
  std::unordered_map<TaskId, Dealt> tasks_;
};

}  // namespace heddle::policy
