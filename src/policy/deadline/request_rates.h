#pragma once

#include <array>
#include <map>
#include <string>

#include "core/units.h"

namespace heddle::policy {

// How much of devices requests ask for: how many arrive, and how long they keep a device busy, by application.
class RequestRates {
 public:
  void arrived(TimePoint now);
  void finished(const std::string& app, Duration busy, TimePoint now);

  // Devices' time a second that the requests of the last ten seconds ask for. In the first second, as if it had passed.
  double load(TimePoint now) const;
  // Of a request of the application, going by the last few; of one that is not known by the mean of all; 0 of nobody.
  Duration expected(const std::string& app) const;

 private:
  static constexpr size_t kSeconds = 10;
  static constexpr size_t kMostApps = 4096;

  struct Second {
    int64_t number = -1;  // of the seconds of the clock
    uint64_t arrivals = 0, finished = 0;
    double busy = 0;  // of those that finished, in seconds
  };
  struct Estimate {
    Duration busy{};
    uint64_t count = 0;
    void add(Duration more);
  };
  Second& at(TimePoint now);

  std::array<Second, kSeconds> seconds_;
  std::map<std::string, Estimate> apps_;
  Estimate all_;
  TimePoint first_ = TimePoint::max();
};

}  // namespace heddle::policy
