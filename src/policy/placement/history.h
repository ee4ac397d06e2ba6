#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/units.h"

namespace heddle::policy {

// What jobs of an application have used so far, which is what placement expects of the next one (Rain section 3.3.1:
// the Scheduler Feedback Table). Means over the latest jobs, the last eight weighing as much as one in eight: the paper
// says that the table is history-based, not how the past fades.
class History {
 public:
  struct Entry {
    uint64_t jobs = 0;
    double busy = 0;         // nanoseconds of a device of weight 1000 (DeviceSpec::weight)
    double utilization = 0;  // of the time for which the job was there, 0 to 1
    uint64_t latest = 0;     // grows with each job of any
  };

  // A job of the application has ended.
  void add(const std::string& app, double busy, double utilization);
  // Nothing where none has ended yet.
  std::optional<Entry> of(const std::string& app) const;
  // Over all applications; zero where there are none.
  Entry mean() const;

 private:
  std::map<std::string, Entry> entries_;
  uint64_t added_ = 0;
};

}  // namespace heddle::policy
