#include "core/printable.h"

#include <cstdint>
#include <cstdio>

namespace heddle {
namespace {

// The bytes of the UTF-8 sequence that `text` begins with; 0 where it is none (overlong forms and surrogates too).
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xc2 && first < 0xe0 ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) >= 0xa0) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

bool controls(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(sequence[1]) < 0xa0;
}

void escape(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else {
      char text[5];
      std::snprintf(text, sizeof text, "\\x%02x", static_cast<uint8_t>(byte));
      out += text;
    }
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view piece = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || controls(piece)) {
      escape(out, piece);
    } else {
      out += piece;
    }
    text.remove_prefix(piece.size());
  }
  return out;
}

}  // namespace heddle
