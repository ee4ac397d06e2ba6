#include "recording.h"

#include <cstring>
#include <string_view>

namespace heddle::numerics {
namespace {

constexpr std::string_view kTitle = "heddle numerics 1\n";

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a number off the front; false if there is none.
template <class T>
bool take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

}  // namespace

std::string to_bytes(const Recording& recording) {
  std::string bytes(kTitle);
  bytes += recording.device + "\n";
  for (const auto& [fingerprint, values] : recording.results) {
    append(bytes, fingerprint);
    append(bytes, static_cast<uint32_t>(values.size()));
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size());
  }
  return bytes;
}

std::optional<Recording> parse_recording(const std::string& bytes) {
  std::string_view rest = bytes;
  if (rest.substr(0, kTitle.size()) != kTitle) return std::nullopt;
  rest.remove_prefix(kTitle.size());
  size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  Recording recording;
  recording.device = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  while (!rest.empty()) {
    uint64_t fingerprint = 0;
    uint32_t size = 0;
    if (!take(rest, fingerprint) || !take(rest, size) || size > rest.size()) return std::nullopt;
    recording.results[fingerprint].assign(rest.begin(), rest.begin() + size);
    rest.remove_prefix(size);
  }
  return recording;
}

}  // namespace heddle::numerics
