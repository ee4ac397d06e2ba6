#include "policy/text.h"

#include <charconv>

namespace heddle::policy {
namespace {

// Appends `hundredths` / 100, without zeros at the end.
void append_hundredths(std::string& to, uint64_t hundredths) {
  append_part(to, hundredths / 100);
  const auto rest = static_cast<unsigned>(hundredths % 100);
  if (rest == 0) return;
  to += '.';
  to += static_cast<char>('0' + rest / 10);
  if (rest % 10 != 0) to += static_cast<char>('0' + rest % 10);
}

}  // namespace

void append_part(std::string& to, uint64_t number) {
  char digits[20];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void append_part(std::string& to, Bytes bytes) {
  struct Unit {
    unsigned shift;
    std::string_view name;
  };
  static constexpr Unit kUnits[] = {{40, " TiB"}, {30, " GiB"}, {20, " MiB"}, {10, " KiB"}};
  for (const Unit& unit : kUnits) {
    if (bytes.value >> unit.shift == 0) continue;
    const uint64_t fraction = bytes.value & ((uint64_t{1} << unit.shift) - 1);
    append_hundredths(to, (bytes.value >> unit.shift) * 100 + (fraction * 100 >> unit.shift));
    to += unit.name;
    return;
  }
  append_part(to, bytes.value);
  to += " B";
}

void append_part(std::string& to, Duration duration) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  append_hundredths(to, static_cast<uint64_t>(milliseconds < 0 ? 0 : milliseconds) / 10);
  to += " s";
}

std::optional<uint32_t> count_in(std::string_view text) {
  uint32_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, count);
  if (status != std::errc() || rest != end || count == 0) return std::nullopt;
  return count;
}

}  // namespace heddle::policy
