#include "device/software/ptx/cursor.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace heddle::ptx {

const Token& Cursor::peek(size_t ahead) const {
  if (failed()) return tokens_.back();
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

const Token& Cursor::next() {
  const Token& token = peek();
  if (!failed() && at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Cursor::at_symbol(char symbol, size_t ahead) const {
  const Token& token = peek(ahead);
  return token.kind == TokenKind::kSymbol && token.text[0] == symbol;
}

bool Cursor::at_dotted(std::string_view text) const {
  return peek().kind == TokenKind::kDotted && peek().text == text;
}

bool Cursor::take(char symbol) {
  bool found = at_symbol(symbol);
  if (found) next();
  return found;
}

bool Cursor::take_dotted(std::string_view text) {
  bool found = at_dotted(text);
  if (found) next();
  return found;
}

void Cursor::expect(char symbol) {
  if (!take(symbol))
    fail_here("expected '%c', found '%.*s'", symbol, static_cast<int>(peek().text.size()), peek().text.data());
}

std::string_view Cursor::expect_name() {
  if (peek().kind == TokenKind::kName) return next().text;
  fail_here("expected a name, found '%.*s'", static_cast<int>(peek().text.size()), peek().text.data());
  return {};
}

Literal Cursor::expect_literal() {
  take('+');
  bool negative = take('-');
  if (peek().kind != TokenKind::kNumber) {
    fail_here("expected a number, found '%.*s'", static_cast<int>(peek().text.size()), peek().text.data());
    return {};
  }
  auto literal = parse_literal(next());
  if (!literal) {
    if (!failed()) error_ = literal.error();
    return {};
  }
  if (negative && literal->kind == Literal::Kind::kInteger) literal->bits = -literal->bits;
  if (negative && literal->kind == Literal::Kind::kFloat32) literal->bits ^= 1ull << 31;
  if (negative && literal->kind == Literal::Kind::kFloat64) literal->bits ^= 1ull << 63;
  return *literal;
}

uint64_t Cursor::expect_count() {
  Literal literal = expect_literal();
  bool sensible = literal.kind == Literal::Kind::kInteger && literal.bits <= INT64_MAX;
  if (!sensible) fail_here("expected a count");
  return sensible ? literal.bits : 0;
}

void Cursor::skip_to_closing(char open, char close) {
  for (int depth = 1; depth > 0 && !at_end();) {
    depth += at_symbol(open);
    depth -= at_symbol(close);
    next();
  }
}

void Cursor::skip_line() {
  if (at_ == 0) return;
  uint32_t line = tokens_[at_ - 1].line;
  while (!at_end() && peek().line == line) next();
}

void Cursor::fail_here(const char* format, ...) {
  if (failed()) return;
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  uint32_t line = peek().line;
  error_ = Error{ErrorCode::kCorrupt, stringf("PTX line %u: %s", line, text)};
}

Error Cursor::take_error() {
  return std::exchange(error_, std::nullopt).value_or(Error{});
}

}  // namespace heddle::ptx
