#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace heddle::image {

// Reads PTX text token by token. Tokens are views into the text: an identifier, a number, a directive with its dot
// (".entry"), a string with its quotes, or one character of punctuation; empty at the end. Never fails: an
// unterminated comment or string ends with the text.
class PtxCursor {
 public:
  explicit PtxCursor(std::string_view text, size_t position = 0) : text_(text), position_(position) {}

  std::string_view next();
  std::string_view peek() const { return PtxCursor(*this).next(); }
  // Takes the next token if it is this one.
  bool take(std::string_view token);

  // Takes tokens up to and including `end`, past nested (), [] and {}; stops at the end of the text.
  void skip_past(char end);

  // The text between a brace that was just taken and its partner, which is taken too. `memory` collects where
  // .shared and .local declarations begin in it (offsets into the block). This passes over all the code of a program,
  // so it looks at characters, not tokens. False where the partner is missing.
  bool skip_block(std::string_view& block, std::vector<size_t>& memory);

  // The line of the last token, from 1; counted when asked, for error texts.
  size_t line() const;

 private:
  void skip_space();
  void skip_comment();
  void skip_string();
  bool declares_memory() const;

  std::string_view text_;
  size_t position_ = 0;
};

bool is_directive(std::string_view token);
bool is_identifier(std::string_view token);

}  // namespace heddle::image
