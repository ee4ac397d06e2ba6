#pragma once

#include <cstdint>

namespace heddle::daemon::testing {

// What records ask of the fake worker (fake_worker.cc), in their first number.

// With kReset: from now on the worker says nothing more to heddled (testing/fake_worker.cc).
inline constexpr uint64_t kMute = 1;
// With kLimit: what is in the way of another worker comes up when the worker is told to give its task up.
inline constexpr uint64_t kWhenSuspended = 1;
// With kLimit: a module's variables were written, and are saved.
inline constexpr uint64_t kWritesVariables = 2;
// With kLimit: it cannot be run again, and a guarded worker does not take it.
inline constexpr uint64_t kNotRepeatable = 3;
// With kPrefetchModule, a fault: of the device, whose work cannot be run again; found by the worker itself; of the
// device, whose work can be run again, and faults again, or does not.
inline constexpr uint64_t kForGood = 0;
inline constexpr uint64_t kRefused = 1;
inline constexpr uint64_t kRepeatable = 2;
inline constexpr uint64_t kRepeatableOnce = 3;
// With kHostCall, a kernel: kForGood or kRepeatableLong, which goes on until TestClient::host_calls_return();
// kRepeatable, which ends when it is run again; or kShown, which is done, and committed when it is run again.
inline constexpr uint64_t kRepeatableLong = 4;
inline constexpr uint64_t kShown = 5;

}  // namespace heddle::daemon::testing
