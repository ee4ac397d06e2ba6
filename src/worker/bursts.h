#pragma once

#include <cstdint>

#include "core/units.h"

namespace heddle::worker {

// Joins a ring's work into bursts: from the first record that comes to an idle ring until nothing is pending or in
// flight. A burst ends with the end of its last work on the device; one without such work does not count. Not
// thread-safe.
class Bursts {
 public:
  // Bursts with smaller gaps in between are one, merged.
  static constexpr Duration kMergedGap = std::chrono::milliseconds(2);
  // The largest are those since the window before the present one began. A window begins with the first burst that
  // ends behind the last window.
  static constexpr Duration kWindow = std::chrono::seconds(3);

  struct Largest {
    Duration burst{}, merged{}, gap{};
  };

  // A record comes. Nothing where a burst is open.
  void begin(TimePoint at);
  // Work that the device has done. Opens a burst where none is: its record came while the last one was being closed.
  void work(TimePoint began, TimePoint ended);
  // Nothing is pending or in flight.
  void end();

  bool open() const { return open_; }
  uint64_t count() const { return count_; }
  Largest largest() const;

 private:
  void close();
  void turn_window();

  bool open_ = false, worked_ = false;
  TimePoint begin_{}, end_{};              // of the open burst, so far
  TimePoint merged_begin_{}, last_end_{};  // of those that were closed
  uint64_t count_ = 0;
  TimePoint window_{};
  Largest now_, before_;
};

}  // namespace heddle::worker
