#include "image/ptx_cursor.h"

#include <algorithm>

namespace heddle::image {
namespace {

// <cctype> asks the locale, which a tenant's program may have changed.
bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
bool continues_word(char c) {
  return is_letter(c) || is_digit(c);
}

}  // namespace

bool is_directive(std::string_view token) {
  return token.size() > 1 && token[0] == '.';
}
bool is_identifier(std::string_view token) {
  return !token.empty() && (is_letter(token[0]) || token[0] == '%');
}

void PtxCursor::skip_comment() {
  const bool line = text_[position_ + 1] == '/';
  const size_t end = line ? text_.find('\n', position_ + 2) : text_.find("*/", position_ + 2);
  position_ = end == std::string_view::npos ? text_.size() : end + (line ? 1 : 2);
}

void PtxCursor::skip_string() {
  for (++position_; position_ < text_.size(); ++position_) {
    if (text_[position_] == '\\') {
      ++position_;
    } else if (text_[position_] == '"') {
      ++position_;
      return;
    }
  }
  position_ = text_.size();
}

void PtxCursor::skip_space() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    const char after = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
    if (is_space(c)) {
      ++position_;
    } else if (c == '/' && (after == '/' || after == '*')) {
      skip_comment();
    } else {
      return;
    }
  }
}

std::string_view PtxCursor::next() {
  skip_space();
  if (position_ >= text_.size()) return {};
  const size_t begin = position_;
  const char first = text_[begin];
  if (first == '"') {
    skip_string();
  } else {
    // A dot begins a directive but belongs to a number (".version 9.0").
    ++position_;
    if (continues_word(first) || first == '.' || first == '%') {
      while (position_ < text_.size() &&
             (continues_word(text_[position_]) || (is_digit(first) && text_[position_] == '.'))) {
        ++position_;
      }
    }
  }
  return text_.substr(begin, position_ - begin);
}

bool PtxCursor::take(std::string_view token) {
  PtxCursor ahead(*this);
  if (ahead.next() != token) return false;
  *this = ahead;
  return true;
}

void PtxCursor::skip_past(char end) {
  size_t depth = 0;
  for (std::string_view token = next(); !token.empty(); token = next()) {
    const char c = token[0];
    if (depth == 0 && c == end) return;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (depth > 0 && (c == ')' || c == ']' || c == '}')) --depth;
  }
}

bool PtxCursor::declares_memory() const {
  const char before = position_ > 0 ? text_[position_ - 1] : ' ';
  if (continues_word(before)) return false;  // an instruction: ld.shared.f32
  const std::string_view rest = text_.substr(position_, sizeof(".shared"));
  for (std::string_view space : {std::string_view(".shared"), std::string_view(".local")}) {
    if (rest.starts_with(space) && (rest.size() == space.size() || !continues_word(rest[space.size()]))) return true;
  }
  return false;
}

bool PtxCursor::skip_block(std::string_view& block, std::vector<size_t>& memory) {
  const size_t begin = position_;
  size_t depth = 1;
  while (position_ < text_.size()) {
    switch (text_[position_]) {
      case '{':
        ++depth;
        break;
      case '}':
        if (--depth == 0) {
          block = text_.substr(begin, position_ - begin);
          ++position_;
          return true;
        }
        break;
      case '.':
        if (declares_memory()) memory.push_back(position_ - begin);
        break;
      case '"':
        skip_string();
        continue;
      case '/': {
        const char after = position_ + 1 < text_.size() ? text_[position_ + 1] : '\0';
        if (after != '/' && after != '*') break;
        skip_comment();
        continue;
      }
      default:
        break;
    }
    ++position_;
  }
  return false;
}

size_t PtxCursor::line() const {
  return 1 + static_cast<size_t>(std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(position_), '\n'));
}

}  // namespace heddle::image
