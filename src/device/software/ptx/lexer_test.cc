#include "device/software/ptx/lexer.h"

#include <gtest/gtest.h>

namespace heddle::ptx {
namespace {

std::vector<std::string> texts(std::string_view source) {
  std::vector<std::string> result;
  auto tokens = tokenize(source);
  EXPECT_TRUE(tokens.has_value()) << tokens.error().text;
  if (tokens)
    for (const Token& token : *tokens) result.emplace_back(token.text);
  return result;
}

Result<Literal> literal(std::string_view text) {
  auto tokens = tokenize(text);
  EXPECT_TRUE(tokens && tokens->size() == 2) << text;
  return parse_literal((*tokens)[0]);
}

TEST(Lexer, SplitsAnInstructionIntoOpcodeModifiersAndOperands) {
  EXPECT_EQ(texts("@!%p1 ld.global.L2::128B.f32 %f1,[%rd1+8];"),
            (std::vector<std::string>{"@", "!", "%p1", "ld", "global", "L2::128B", "f32", "%f1", ",", "[", "%rd1", "+",
                                      "8", "]", ";", ""}));
}

TEST(Lexer, KeepsLineNumbersAcrossCommentsAndRemovesThem) {
  auto tokens = tokenize("a // b c\n/* d\ne */ f");
  ASSERT_TRUE(tokens.has_value());
  ASSERT_EQ(tokens->size(), 3u);
  EXPECT_EQ((*tokens)[0].line, 1u);
  EXPECT_EQ((*tokens)[1].text, "f");
  EXPECT_EQ((*tokens)[1].line, 3u);
}

TEST(Lexer, RefusesWhatHasNoEndOrIsNotPtx) {
  EXPECT_NE(tokenize("x\n/* never closed").error().text.find("line 2"), std::string::npos);
  EXPECT_FALSE(tokenize("\"never closed\n\"").has_value());
  EXPECT_FALSE(tokenize("a \x01 b").has_value());
  EXPECT_FALSE(tokenize("`").has_value());
}

TEST(Lexer, ReadsEveryFormOfNumber) {
  struct Case {
    const char* text;
    Literal::Kind kind;
    uint64_t bits;
  };
  const Case cases[] = {
      {"42", Literal::Kind::kInteger, 42},
      {"42U", Literal::Kind::kInteger, 42},
      {"0xFfU", Literal::Kind::kInteger, 255},
      {"017", Literal::Kind::kInteger, 15},
      {"0b101", Literal::Kind::kInteger, 5},
      {"0", Literal::Kind::kInteger, 0},
      {"18446744073709551615", Literal::Kind::kInteger, ~0ull},
      {"0f3F800000", Literal::Kind::kFloat32, 0x3F800000},
      {"0dBFF0000000000000", Literal::Kind::kFloat64, 0xBFF0000000000000},
      {"1.5", Literal::Kind::kFloat64, 0x3FF8000000000000},
      {"1.5e-1", Literal::Kind::kFloat64, 0x3FC3333333333333},
  };
  for (const Case& c : cases) {
    auto value = literal(c.text);
    ASSERT_TRUE(value.has_value()) << c.text;
    EXPECT_EQ(value->kind, c.kind) << c.text;
    EXPECT_EQ(value->bits, c.bits) << c.text;
  }
}

TEST(Lexer, RefusesNumbersThatAreNone) {
  for (const char* text : {"0f3F8", "0d12", "12ab", "0xG", "18446744073709551616", "089", "1.5x"})
    EXPECT_FALSE(literal(text).has_value()) << text;
}

}  // namespace
}  // namespace heddle::ptx
