#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/ids.h"
#include "core/units.h"

// Reasons are written for every decision, so they are put together without printf: a number costs about 20 ns here, and
// printing a double several hundred.
namespace heddle::policy {

void append_part(std::string& to, uint64_t number);
void append_part(std::string& to, Bytes bytes);  // binary units, two digits after the point: "2.15 GiB"
void append_part(std::string& to, Duration duration);
inline void append_part(std::string& to, std::string_view text) {
  to += text;
}
inline void append_part(std::string& to, const char* text) {
  to += text;
}
template <std::unsigned_integral T>
void append_part(std::string& to, T number) {
  append_part(to, static_cast<uint64_t>(number));
}
template <class Tag>
void append_part(std::string& to, Id<Tag> id) {
  append_part(to, id.value);
}

template <class... Parts>
void append(std::string& to, const Parts&... parts) {
  (append_part(to, parts), ...);
}

// The number that all of `text` is; none where it is no whole number of at least 1.
std::optional<uint32_t> count_in(std::string_view text);

// text("fits on ", device, " (", free, " free)")
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string joined;
  joined.reserve(160);
  append(joined, parts...);
  return joined;
}

}  // namespace heddle::policy
