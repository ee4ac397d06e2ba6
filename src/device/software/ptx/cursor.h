#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/software/ptx/lexer.h"

namespace heddle::ptx {

// Walks over tokens. The first error sticks: from then on every token reads as the end, so that parsing code needs no
// checks between its steps and every loop that stops at the end stops.
class Cursor {
 public:
  explicit Cursor(const std::vector<Token>& tokens) : tokens_(tokens) {}

  const Token& peek(size_t ahead = 0) const;
  const Token& next();
  bool at_end() const { return peek().kind == TokenKind::kEnd; }

  bool at_symbol(char symbol, size_t ahead = 0) const;
  bool at_dotted(std::string_view text) const;
  // Steps over the token if it is the one; says whether it was.
  bool take(char symbol);
  bool take_dotted(std::string_view text);
  // The same, but an error otherwise.
  void expect(char symbol);
  std::string_view expect_name();
  Literal expect_literal();  // with an optional sign
  uint64_t expect_count();   // a non-negative integer

  // Steps behind the brace, bracket or parenthesis that closes the one just taken.
  void skip_to_closing(char open, char close);
  void skip_line();  // to the first token on a later line than the token just taken

  // Records the first error, with the line of the current token.
  [[gnu::format(printf, 2, 3)]] void fail_here(const char* format, ...);
  bool failed() const { return error_.has_value(); }
  Error take_error();
  size_t position() const { return at_; }
  void rewind(size_t position) { at_ = position; }

 private:
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  std::optional<Error> error_;
};

}  // namespace heddle::ptx
