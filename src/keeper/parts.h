#pragma once

#include <optional>

#include "core/units.h"
#include "device/device.h"

namespace heddle::keeper {

// Cuts a copy into parts, in order, each of which is soon done: of many bytes in few rows, and of many rows.
class Parts {
 public:
  // HARDWARE.md: 5 ms at 55 GB/s, so that whoever waits for memory does not notice.
  static constexpr uint64_t kBytes = 256 * kMiB;
  // What a row costs beside its bytes is not measured: as many as a part of 256 bytes a row has.
  static constexpr uint64_t kRows = 1 << 20;

  explicit Parts(const device::CopyShape& whole);
  std::optional<device::CopyShape> next();

 private:
  device::CopyShape whole_;
  uint64_t x_ = 0, y_ = 0, z_ = 0;  // where the next part begins
};

}  // namespace heddle::keeper
