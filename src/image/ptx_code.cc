#include "image/ptx_code.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "image/ptx_cursor.h"

namespace heddle::image {
namespace {

std::optional<uint64_t> number_of(std::string_view token) {
  int base = 10;
  if (token.starts_with("0x") || token.starts_with("0X")) {
    token.remove_prefix(2);
    base = 16;
  }
  while (!token.empty() && token.back() == 'U') token.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value, base);
  if (token.empty() || error != std::errc{} || end != token.data() + token.size()) return std::nullopt;
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view body) : cursor_(body) {}

  PtxCode read() {
    for (std::string_view token = cursor_.next(); !token.empty(); token = cursor_.next()) statement(token);
    return std::move(code_);
  }

 private:
  void statement(std::string_view token) {
    if (token == "{" || token == "}" || token == ";") return;
    if (token == "@") {
      cursor_.take("!");
      cursor_.next();  // the predicate
      return;          // its instruction comes next
    }
    if (token == ".loc") return location();
    if (is_directive(token)) return directive(token);
    if (cursor_.take(":")) return;  // a label
    instruction(token);
  }

  // ".loc 1 20 3, function_name $L__info_string0+16, inlined_at 1 2 3": the one directive without a ';' at its end.
  void location() {
    skip_numbers();
    while (cursor_.take(",")) {
      cursor_.next();  // function_name or inlined_at
      if (is_identifier(cursor_.peek())) cursor_.next();
      if (cursor_.take("+")) cursor_.next();
      skip_numbers();
    }
  }
  void skip_numbers() {
    while (number_of(cursor_.peek())) cursor_.next();
  }

  // ".param .align 8 .b8 param0[16];" names a call's argument; everything else is of no interest here.
  void directive(std::string_view token) {
    const bool argument = token == ".param";
    std::string_view last;
    for (token = cursor_.next(); !token.empty() && token != ";"; token = cursor_.next()) {
      if (token == ":") return;  // behind a label with a dot
      if (token == "[") {
        cursor_.skip_past(']');
      } else if (is_identifier(token)) {
        last = token;
      }
    }
    if (!argument || last.empty()) return;
    scoped_[last] = code_.arguments.emplace_back(std::string(last) + "#" + std::to_string(code_.arguments.size()));
  }

  void instruction(std::string_view name) {
    PtxInstruction made;
    made.name = name;
    std::string_view token = cursor_.next();
    while (is_directive(token) || token == ":") {
      if (token == ":") {
        cursor_.take(":");
        behind_colons(cursor_.next(), made);
      } else {
        made.modifiers.push_back(token);
      }
      token = cursor_.next();
    }
    PtxOperand operand;
    bool any = false;
    for (; !token.empty() && token != ";"; token = cursor_.next()) {
      if (token == "," && depth_ == 0) {
        made.operands.push_back(std::move(operand));
        operand = {};
        any = false;
        continue;
      }
      any = true;
      operand_token(token, operand);
    }
    depth_ = 0;
    if (any) made.operands.push_back(std::move(operand));
    code_.instructions.push_back(std::move(made));
  }

  // ".shared::cta" and ".L2::128B" end in a word of their own; the latter, a number to the cursor, takes what follows
  // along.
  static void behind_colons(std::string_view word, PtxInstruction& made) {
    for (size_t dot = word.find('.'); dot != std::string_view::npos;) {
      const size_t end = std::min(word.find('.', dot + 1), word.size());
      made.modifiers.push_back(word.substr(dot, end - dot));
      dot = end == word.size() ? std::string_view::npos : end;
    }
  }

  void operand_token(std::string_view token, PtxOperand& operand) {
    if (token == "[" || token == "{" || token == "(") {
      ++depth_;
      if (token == "[")
        operand.memory = true;
      else
        operand.vector = true;
    } else if (token == "]" || token == "}" || token == ")") {
      if (depth_ > 0) --depth_;
    } else if (is_identifier(token)) {
      const auto scoped = scoped_.find(token);
      operand.names.push_back(scoped == scoped_.end() ? token : scoped->second);
    } else if (const auto number = number_of(token)) {
      operand.number = number;
    }
  }

  PtxCursor cursor_;
  PtxCode code_;
  std::unordered_map<std::string_view, std::string_view> scoped_;
  size_t depth_ = 0;
};

}  // namespace

bool PtxInstruction::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

PtxCode read_code(std::string_view body) {
  return Reader(body).read();
}

}  // namespace heddle::image
