#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"

namespace heddle::policy {

struct KnownApp;

// What jobs of an application have used so far, which is what placement expects of the next one (Rain section 3.3.1:
// the Scheduler Feedback Table). Means over the latest jobs, the last eight weighing as much as one in eight: the paper
// says that the table is history-based, not how the past fades. Nor does it say what becomes of the table at a restart:
// here it goes on (restore).
class History {
 public:
  struct Entry {
    uint64_t jobs = 0;
    double busy = 0;         // nanoseconds of a device of weight 1000 (DeviceSpec::weight)
    double utilization = 0;  // of the time for which the job was there, 0 to 1
    double by_host = 0;      // busy by the user and system time of its programs, 0 to kMostByHost
    uint64_t latest = 0;     // grows with each job of any
    // Whether jobs could have led to it.
    bool is_possible() const;
  };

  // Programs sleep while their device works, and may use it for many times as long as they compute themselves. One that
  // hardly computes does not count for more than this.
  static constexpr double kMostByHost = 100;

  // A job of the application has ended.
  void add(const std::string& app, double busy, double utilization, double by_host);
  // What an earlier history knew of an application, in place of what is known here. Said in the order of known(), it is
  // forgotten in that order, too.
  void restore(const KnownApp& known);
  // All of it, the application whose job ended last last.
  std::vector<KnownApp> known() const;
  // Grows with all that is added and restored.
  uint64_t version() const { return added_; }
  // Nothing where none has ended yet.
  std::optional<Entry> of(const std::string& app) const;
  // Over all applications; zero where there are none.
  Entry mean() const;

 private:
  void forget_beyond_most();

  std::map<std::string, Entry> entries_;
  uint64_t added_ = 0;
};

// What a history knows of an application, for another history.
struct KnownApp {
  std::string app;
  History::Entry entry;  // but for `latest`
};

}  // namespace heddle::policy
