#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace heddle {

// An amount of memory. Arithmetic wraps like the uint64_t inside: check before subtracting.
struct Bytes {
  uint64_t value = 0;
  friend auto operator<=>(const Bytes&, const Bytes&) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  constexpr Bytes& operator+=(Bytes b) {
    value += b.value;
    return *this;
  }
  constexpr Bytes& operator-=(Bytes b) {
    value -= b.value;
    return *this;
  }
};

inline constexpr uint64_t kKiB = 1ull << 10, kMiB = 1ull << 20, kGiB = 1ull << 30;

constexpr uint64_t round_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

// "512", "64K", "1.5G", "16GiB": binary units, as cudaMalloc counts. Errors name the text.
Result<Bytes> parse_bytes(std::string_view text);
// "1.5 GiB": three significant digits.
std::string to_string(Bytes bytes);

// Time is monotonic nanoseconds since boot (CLOCK_MONOTONIC): the same clock in every process of a machine.
using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<struct MonotonicTag, Duration>;

// The earlier of two times. A time without a value never comes.
inline std::optional<TimePoint> earlier(std::optional<TimePoint> one, std::optional<TimePoint> other) {
  if (!one || !other) return one ? one : other;
  return *one < *other ? one : other;
}

// "200ms", "1.5s", "2m", "1h". Errors name the text.
Result<Duration> parse_duration(std::string_view text);
std::string to_string(Duration duration);

}  // namespace heddle
