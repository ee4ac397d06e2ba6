#pragma once

#include <cstdint>
#include <string>

namespace heddle::policy {

// What a request waits for: the scarce thing. The text beside it names device and numbers.
enum class WaitCause : uint8_t {
  kMemory,       // no device that the policy may use has the memory free, or room for one more worker's context
  kSms,          // a device has the memory, and none has room on its SMs
  kSeat,         // each device has as many jobs as the policy allows
  kReservation,  // the device that has what is needed is kept for an older request
  kTurn,         // devices are kept for those who are in a hurry, or are others' turn
  kUserLimit,    // its user's programs hold all that they may together
};

// As `heddle ps` and `heddle top` show it.
constexpr const char* name_of(WaitCause cause) {
  switch (cause) {
    case WaitCause::kMemory:
      return "memory";
    case WaitCause::kSms:
      return "SMs";
    case WaitCause::kSeat:
      return "a device";
    case WaitCause::kReservation:
      return "an older request";
    case WaitCause::kTurn:
      return "its turn";
    case WaitCause::kUserLimit:
      return "the user's limit";
  }
  return "";
}

// Why a request could not go when it was last attempted.
struct WhyWaits {
  std::string text = {};
  WaitCause cause = WaitCause::kMemory;
  bool empty() const { return text.empty(); }
};

}  // namespace heddle::policy
