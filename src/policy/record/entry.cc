#include "policy/record/entry.h"

namespace heddle::policy {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

}  // namespace

void EntryWriter::text(std::string_view value) {
  line_ += " '";
  for (const char letter : value) {
    const auto code = static_cast<unsigned char>(letter);
    if (code > ' ' && code < 0x7f && code != '%') {
      line_ += letter;
    } else {
      line_ += '%';
      line_ += kHex[code >> 4];
      line_ += kHex[code & 15];
    }
  }
}

std::string_view EntryReader::word() {
  if (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  const std::string_view word = rest_.substr(0, rest_.find(' '));
  rest_.remove_prefix(word.size());
  return word;
}

void EntryReader::text(std::string& value) {
  const std::string_view coded = word();
  value.clear();
  good_ = good_ && !coded.empty() && coded.front() == '\'';
  for (size_t i = 1; i < coded.size(); ++i) {
    if (coded[i] != '%') {
      value += coded[i];
      continue;
    }
    const size_t high = i + 2 < coded.size() ? kHex.find(coded[i + 1]) : std::string_view::npos;
    const size_t low = i + 2 < coded.size() ? kHex.find(coded[i + 2]) : std::string_view::npos;
    good_ = good_ && high != std::string_view::npos && low != std::string_view::npos;
    if (!good_) return;
    value += static_cast<char>(high << 4 | low);
    i += 2;
  }
}

}  // namespace heddle::policy
