#pragma once

#include <algorithm>
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
  // Of a request of the application: what half of the last few took at most, so that one that was slow says nothing of
  // the next. Of an application that is not known, the mean of the last few of all. A single one is none to go by: a
  // program's first request loads its modules. 0 of nobody.
  Duration expected(const std::string& app) const;
  // The same for who must not take too little: what all of the last few but one took at most.
  Duration at_most(const std::string& app) const;

 private:
  static constexpr size_t kSeconds = 10;
  static constexpr size_t kMostApps = 4096;

  struct Second {
    int64_t number = -1;  // of the seconds of the clock
    uint64_t arrivals = 0, finished = 0;
    double busy = 0;  // of those that finished, in seconds
  };
  struct Latest {
    static constexpr uint64_t kMany = 8, kLeast = 2;  // remembered; to go by

    std::array<Duration, kMany> busy{};
    uint64_t count = 0;  // of all that ever were

    void add(Duration more) { busy[count++ % kMany] = more; }
    bool says_something() const { return count >= kLeast; }
    uint64_t remembered() const { return std::min(count, kMany); }
    Duration ranked(uint64_t place) const;  // 0: the shortest that is remembered
    Duration mean() const;
  };
  Second& at(TimePoint now);
  const Latest* known(const std::string& app) const;
  Duration of_all() const { return all_.says_something() ? all_.mean() : Duration{}; }

  std::array<Second, kSeconds> seconds_;
  std::map<std::string, Latest> apps_;
  Latest all_;
  TimePoint first_ = TimePoint::max();
};

}  // namespace heddle::policy
