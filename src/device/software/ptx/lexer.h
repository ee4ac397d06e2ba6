#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/software/ptx/ast.h"

namespace heddle::ptx {

enum class TokenKind : uint8_t {
  kName,    // vecadd, %r1, $L__BB0_2
  kDotted,  // .global, .L2::128B; the text is without the dot
  kNumber,
  kString,  // the text is without the quotes
  kSymbol,  // one character: { } ( ) [ ] < > , ; : + - ! | @ =
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool glued = false;  // no space between the previous token and this one
  uint32_t line = 0;
  std::string_view text;  // into the source
};

// All tokens of `source`, comments removed, with a kEnd at the end. The tokens refer to `source`.
// Errors name the line of an unterminated comment or string, or of a character that PTX does not have.
Result<std::vector<Token>> tokenize(std::string_view source);

// The value of a number token: decimal, hexadecimal, octal, binary, with U, "0f" and "0d" bit patterns, decimal floats.
Result<Literal> parse_literal(const Token& token);

}  // namespace heddle::ptx
