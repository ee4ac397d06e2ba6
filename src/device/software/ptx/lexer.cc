#include "device/software/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

namespace heddle::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_digit(c) || is_letter(c) || c == '_' || c == '$';
}
bool starts_name(char c) {
  return is_letter(c) || c == '_' || c == '$' || c == '%';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    for (;;) {
      size_t before = at_;
      HEDDLE_TRY(skip_space());
      bool glued = at_ == before;
      if (at_ == source_.size()) break;
      HEDDLE_TRY(next(glued));
    }
    tokens_.push_back({TokenKind::kEnd, false, line_, {}});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  Status skip_space() {
    while (at_ < source_.size()) {
      if (peek() == '\n') {
        ++line_, ++at_;
      } else if (peek() == ' ' || peek() == '\t' || peek() == '\r') {
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        at_ = std::min(source_.find('\n', at_), source_.size());
      } else if (peek() == '/' && peek(1) == '*') {
        size_t end = source_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return fail(ErrorCode::kCorrupt, "PTX line %u: comment without end", line_);
        for (; at_ < end + 2; ++at_) line_ += peek() == '\n';
      } else {
        break;
      }
    }
    return {};
  }

  Status next(bool glued) {
    char c = peek();
    if (c == '"') return string(glued);
    if (is_digit(c)) return add(TokenKind::kNumber, number_length(), glued);
    if (starts_name(c)) return add(TokenKind::kName, word_length(1), glued);
    if (c == '.' && is_word(peek(1))) {
      ++at_;
      return add(TokenKind::kDotted, dotted_length(), glued);
    }
    if (c != 0 && std::strchr("{}()[]<>,;:+-!|@=*&.", c)) return add(TokenKind::kSymbol, 1, glued);
    return fail(ErrorCode::kCorrupt, "PTX line %u: character 0x%02x is not PTX", line_, static_cast<unsigned char>(c));
  }

  Status add(TokenKind kind, size_t length, bool glued) {
    tokens_.push_back({kind, glued, line_, source_.substr(at_, length)});
    at_ += length;
    return {};
  }

  Status string(bool glued) {
    size_t end = source_.find_first_of("\"\n", at_ + 1);
    if (end == std::string_view::npos || source_[end] != '"')
      return fail(ErrorCode::kCorrupt, "PTX line %u: string without end", line_);
    tokens_.push_back({TokenKind::kString, glued, line_, source_.substr(at_ + 1, end - at_ - 1)});
    at_ = end + 1;
    return {};
  }

  size_t word_length(size_t from) const {
    while (is_word(peek(from))) ++from;
    return from;
  }

  // "L2::128B": the parts of a qualified modifier belong together.
  size_t dotted_length() const {
    size_t length = word_length(0);
    while (peek(length) == ':' && peek(length + 1) == ':' && is_word(peek(length + 2)))
      length = word_length(length + 2);
    return length;
  }

  size_t number_length() const {
    size_t length = word_length(0);
    if (peek(length) == '.' && is_digit(peek(length + 1))) length = word_length(length + 1);
    bool decimal = !(peek() == '0' && is_letter(peek(1)));
    bool exponent = peek(length - 1) == 'e' || peek(length - 1) == 'E';
    if (decimal && exponent && (peek(length) == '-' || peek(length) == '+')) length = word_length(length + 1);
    return length;
  }

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

std::optional<uint64_t> parse_digits(std::string_view digits, int base) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<Literal> parse_decimal_float(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  double value = std::strtod(copy.c_str(), &end);
  if (*end) return std::nullopt;
  return Literal{Literal::Kind::kFloat64, std::bit_cast<uint64_t>(value)};
}

std::optional<Literal> parse_prefixed(std::string_view text) {
  auto literal = [&](Literal::Kind kind, int base, std::string_view digits) -> std::optional<Literal> {
    if (auto value = parse_digits(digits, base)) return Literal{kind, *value};
    return std::nullopt;
  };
  std::string_view rest = text.substr(2);
  switch (text[1] | 0x20) {
    case 'x':
      return literal(Literal::Kind::kInteger, 16, rest);
    case 'b':
      return literal(Literal::Kind::kInteger, 2, rest);
    case 'f':
      return rest.size() == 8 ? literal(Literal::Kind::kFloat32, 16, rest) : std::nullopt;
    case 'd':
      return rest.size() == 16 ? literal(Literal::Kind::kFloat64, 16, rest) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(source).run();
}

Result<Literal> parse_literal(const Token& token) {
  std::string_view text = token.text;
  std::optional<Literal> literal;
  if (text.size() > 2 && text[0] == '0' && is_letter(text[1]) && text[1] != 'U') {
    if (text.back() == 'U') text.remove_suffix(1);
    literal = parse_prefixed(text);
  } else if (text.find_first_of(".eE") != std::string_view::npos) {
    literal = parse_decimal_float(text);
  } else {
    if (text.back() == 'U') text.remove_suffix(1);
    bool octal = text.size() > 1 && text[0] == '0';
    if (auto value = parse_digits(text, octal ? 8 : 10)) literal = Literal{Literal::Kind::kInteger, *value};
  }
  if (!literal)
    return fail(ErrorCode::kCorrupt, "PTX line %u: '%.*s' is not a number", token.line,
                static_cast<int>(token.text.size()), token.text.data());
  return *literal;
}

}  // namespace heddle::ptx
