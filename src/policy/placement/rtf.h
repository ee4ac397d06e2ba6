#pragma once

#include "policy/placement/gwtmin.h"
#include "policy/placement/history.h"

namespace heddle::policy {

// Runtime feedback (Rain section 4.3): the device where least work is expected to be left, the new job's included, for
// its weight. What an application is expected to use is what its jobs before have used (history.h); of what the jobs
// on a device were expected to use, what they have used already is over, but at least an eighth is still to come.
// gwtmin where nothing is known of the application.
//
// Left open by the paper, and chosen: its "execution time of requests scheduled on the GPU" is busy time, that is the
// time in which anything of the job was on the device, as one of weight 1000 would have needed; jobs of applications
// without history count as the mean of all; what a job is expected to use is fixed when it is assigned.
class Rtf : public GWtMin {
 public:
  std::unique_ptr<Placement> clone() const override { return std::make_unique<Rtf>(*this); }
  void opened(const Pool& pool) override;
  void job_opened(JobId job, const std::string& app) override;
  void assigned(const Request& request, DeviceId device) override;
  void served(JobId job, DeviceId device, const Service& since_last) override;
  void computed(JobId job, Duration since_last) override;
  void job_ended(JobId job, Duration life) override;
  const History* history() const override { return &history_; }
  void remember(const KnownApp& app) override { history_.restore(app); }

 protected:
  Placed choose(const Request& request, std::span<const DeviceId> fitting, const Pool& pool) const override;

  // Which of an application's utilizations jobs on a device add up.
  virtual double utilization_of(const History::Entry& entry) const { return entry.utilization; }
  // What the history says of the job's application.
  std::optional<History::Entry> expected(JobId job) const;
  // Expected to be left there with a job of so much more, in nanoseconds of a device of weight 1000, by its weight.
  double load_with(DeviceId device, double more) const;
  uint64_t utilization(DeviceId device) const { return devices_[device.value].utilization; }

 private:
  struct Share {                        // of a job in a device
    double expected = 0, attained = 0;  // nanoseconds of a device of weight 1000
    uint64_t utilization = 0;           // in thousandths
    double left() const;
  };
  struct Job {
    std::string app;
    std::vector<DeviceId> devices;  // that it is assigned to
    double attained = 0;
    Duration busy{};
    std::optional<Duration> computed;  // by its programs themselves; none: nobody said
  };
  struct Device {
    double weight = 1;  // 1 is DeviceSpec::weight 1000
    double left = 0;    // summed up over the jobs
    uint64_t utilization = 0;
    std::map<JobId, Share> jobs;
  };
  static void sum_up(Device& device);

  History history_;
  std::map<JobId, Job> jobs_;
  std::vector<Device> devices_;
};

}  // namespace heddle::policy
