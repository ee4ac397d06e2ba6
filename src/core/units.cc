#include "core/units.h"

#include <charconv>
#include <cmath>

namespace heddle {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// Splits "1.5GiB" into 1.5 and the factor of "GiB"; `units` lists what is accepted, the empty name included.
template <size_t N>
Result<double> parse_with_unit(std::string_view text, const Unit (&units)[N], const char* what, const char* example) {
  double number = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix(rest, static_cast<size_t>(text.data() + text.size() - rest));
  if (status == std::errc() && std::isfinite(number) && number >= 0) {
    for (const Unit& unit : units) {
      if (suffix == unit.name) return number * unit.factor;
    }
  }
  return fail(ErrorCode::kInvalidArgument, "'%.*s' is not %s; write it like %s", static_cast<int>(text.size()),
              text.data(), what, example);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  static constexpr Unit kUnits[] = {
      {"", 1},       {"B", 1},    {"K", kKiB},   {"KiB", kKiB},      {"M", kMiB},
      {"MiB", kMiB}, {"G", kGiB}, {"GiB", kGiB}, {"T", kGiB * 1024}, {"TiB", kGiB * 1024}};
  auto value = parse_with_unit(text, kUnits, "an amount of memory", "512M or 1.5GiB");
  if (!value) return tl::unexpected(std::move(value).error());
  if (*value >= 0x1p63)
    return fail(ErrorCode::kInvalidArgument, "'%.*s' is more memory than 64 bits can count",
                static_cast<int>(text.size()), text.data());
  return Bytes{static_cast<uint64_t>(*value)};
}

std::string to_string(Bytes bytes) {
  static constexpr Unit kUnits[] = {{"TiB", kGiB * 1024}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}};
  const auto value = static_cast<double>(bytes.value);
  for (const Unit& unit : kUnits) {
    if (value >= unit.factor) return stringf("%.4g %s", value / unit.factor, unit.name.data());
  }
  return stringf("%.4g B", value);
}

Result<Duration> parse_duration(std::string_view text) {
  static constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  auto value = parse_with_unit(text, kUnits, "a duration", "200ms or 1.5s");
  if (!value) return tl::unexpected(std::move(value).error());
  if (*value >= 0x1p62)
    return fail(ErrorCode::kInvalidArgument, "'%.*s' is longer than 64 bits can count", static_cast<int>(text.size()),
                text.data());
  return Duration{static_cast<int64_t>(*value)};
}

std::string to_string(Duration duration) {
  static constexpr Unit kUnits[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}};
  const auto value = static_cast<double>(duration.count());
  for (const Unit& unit : kUnits) {
    if (std::fabs(value) >= unit.factor) return stringf("%.4g %s", value / unit.factor, unit.name.data());
  }
  return stringf("%.4g ns", value);
}

}  // namespace heddle
